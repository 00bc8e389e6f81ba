"""How many elements each algorithm moves between HBM and the chip, in closed form.

Every function returns, for each array, the elements read and written; multiply by the width of
the array to get bytes. Tr = ⌈Nq/Br⌉ tiles of queries, Tc = ⌈Nk/Bc⌉ tiles of keys. The forms are
exact, ragged tiles included: a metered run of the reference moves these numbers to the byte.
"""

from collections.abc import Callable
from dataclasses import dataclass

from reference_numpy.tiling import cdiv, fully_masked, tiles


@dataclass(frozen=True)
class Moved:
    """Elements of one array: `read` from HBM and `written` to it."""

    read: int = 0
    written: int = 0


IO = dict[str, Moved]


@dataclass(frozen=True)
class Problem:
    """Sizes of one attention problem and its tiles.

    Attributes:
        Nq, Nk, d: queries, keys, head dimension.
        Br, Bc: query rows and key rows of a tile.
        causal: whether fully masked tiles are skipped.
    """

    Nq: int
    Nk: int
    d: int
    Br: int
    Bc: int
    causal: bool = False

    def visits(self, weight: Callable[[slice, slice], int]) -> int:
        """Σ weight(rows, cols) over the tiles that a kernel visits."""
        return sum(
            weight(rows, cols)
            for rows in tiles(self.Nq, self.Br)
            for cols in tiles(self.Nk, self.Bc)
            if not (self.causal and fully_masked(rows, cols, self.Nq, self.Nk))
        )

    @property
    def query_visits(self) -> int:
        """Query rows summed over the visited tiles: Tc·Nq without a mask."""
        return self.visits(lambda rows, cols: rows.stop - rows.start)

    @property
    def key_visits(self) -> int:
        """Key rows summed over the visited tiles: Tr·Nk without a mask."""
        return self.visits(lambda rows, cols: cols.stop - cols.start)

    @property
    def first_visits(self) -> int:
        """Query rows that see at least one tile: Nq without a mask."""
        return sum(
            rows.stop - rows.start
            for rows in tiles(self.Nq, self.Br)
            if not (self.causal and fully_masked(rows, slice(0, 1), self.Nq, self.Nk))
        )


def total(io: IO) -> int:
    """Elements moved in either direction, over all arrays."""
    return sum(moved.read + moved.written for moved in io.values())


def three_kernels(p: Problem, *, resident: bool = True) -> IO:
    """Standard attention: 4Nd + 4N² when K and V stay on chip (`resident`).

    Otherwise K and V are read once per tile of queries. Source: FlashAttention, Algorithm 0.
    """
    S = p.Nq * p.Nk
    kv = p.Nk * p.d * (1 if resident else cdiv(p.Nq, p.Br))
    return {
        "Q": Moved(read=p.Nq * p.d),
        "K": Moved(read=kv),
        "V": Moved(read=kv),
        "S": Moved(read=S, written=S),
        "P": Moved(read=S, written=S),
        "O": Moved(written=p.Nq * p.d),
    }


def standard_backward(p: Problem, *, resident: bool = True) -> IO:
    """The backward pass over a stored P: 7N² + 8Nd when what is re-read stays on chip.

    Source: FlashAttention, Algorithm 3.
    """
    S, q, k = p.Nq * p.Nk, p.Nq * p.d, p.Nk * p.d
    Tr, Tc = (1, 1) if resident else (cdiv(p.Nq, p.Br), cdiv(p.Nk, p.Bc))
    return {
        "P": Moved(read=2 * S),
        "dO": Moved(read=Tc * q + q),
        "V": Moved(read=Tr * k),
        "dP": Moved(read=S, written=S),
        "dS": Moved(read=2 * S, written=S),
        "K": Moved(read=Tr * k),
        "Q": Moved(read=Tc * q),
        "dQ": Moved(written=q),
        "dK": Moved(written=k),
        "dV": Moved(written=k),
    }


def flash1_forward(p: Problem) -> IO:
    """FlashAttention-1: K, V once; Q, O, l, m for every tile of keys.

    Source: FlashAttention, Algorithm 1 and Theorem 2.
    """
    visits, first = p.query_visits, p.first_visits
    unseen = p.Nq - first  # queries that see no key get O = 0 and LSE = −∞, nothing else
    return {
        "Q": Moved(read=visits * p.d),
        "K": Moved(read=p.Nk * p.d),
        "V": Moved(read=p.Nk * p.d),
        "O": Moved(read=(visits - first) * p.d, written=(visits + unseen) * p.d),
        "l": Moved(read=visits - first, written=visits),
        "m": Moved(read=visits - first, written=visits),
        "LSE": Moved(written=p.Nq),
    }


def flash2_forward(p: Problem) -> IO:
    """FlashAttention-2: Q, O, LSE once; K and V for every visited tile.

    Source: FlashAttention-2, Algorithm 1.
    """
    return {
        "Q": Moved(read=p.Nq * p.d),
        "K": Moved(read=p.key_visits * p.d),
        "V": Moved(read=p.key_visits * p.d),
        "O": Moved(written=p.Nq * p.d),
        "LSE": Moved(written=p.Nq),
    }


def flash_backward(p: Problem) -> IO:
    """The recomputing backward pass: K, V, dK, dV once; Q, dO, LSE, D, dQ for every tile of keys.

    D = rowsum(dO ∘ O) is computed first, which reads dO and O once more.
    Source: FlashAttention-2, Algorithm 2.
    """
    visits, first = p.query_visits, p.first_visits
    return {
        "Q": Moved(read=visits * p.d),
        "K": Moved(read=p.Nk * p.d),
        "V": Moved(read=p.Nk * p.d),
        "O": Moved(read=p.Nq * p.d),
        "dO": Moved(read=(p.Nq + visits) * p.d),
        "LSE": Moved(read=visits),
        "D": Moved(read=visits, written=p.Nq),
        "dQ": Moved(read=(visits - first) * p.d, written=(visits + p.Nq - first) * p.d),
        "dK": Moved(written=p.Nk * p.d),
        "dV": Moved(written=p.Nk * p.d),
    }

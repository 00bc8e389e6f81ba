"""The catalogue of bugs: each planted in a kernel, with all that the report must name.

Most are a textual change to a correct kernel; the rest are small kernels of their own in planted/,
whose guilty line is marked BUG (and the other party's OTHER).
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .correct import LAUNCHES, Launch, source

PLANTED = Path(__file__).parent / "planted"
SYNC = "__syncthreads();"
WAIT = "wait<1>();"


@dataclass(frozen=True)
class Change:
    """Replace the n-th occurrence of `old` by `new`, on the same line, so that lines keep."""

    old: str
    new: str = ""
    nth: int = 1

    def apply(self, text: str) -> str:
        parts = text.split(self.old)
        assert len(parts) > self.nth, f"{self.old!r} occurs {len(parts) - 1} times"
        return self.old.join(parts[: self.nth]) + self.new + self.old.join(parts[self.nth :])


@dataclass(frozen=True)
class Bug:
    """A planted bug and its report: kind, line (as a piece of its text), array, offset, thread.

    `called` is a piece of the line that calls the inlined function of the guilty line. `other` is a
    piece of the other party's line. `threads` are those that may be named, `says` what the report
    must contain, whatever its wording otherwise.
    """

    kernel: str
    kind: str
    at: str = "// BUG"
    changes: tuple[Change, ...] = ()
    launch: Launch | None = None
    array: str | tuple = ()
    offset: int | None = None
    block: tuple | None = None
    threads: object = None
    others: int | None = None
    other: str = ""
    called: str = ""
    says: tuple[str, ...] = ()
    options: dict = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The source with the bug in it."""
        planted = PLANTED / f"{self.kernel}.cu"
        text = planted.read_text() if planted.exists() else source(self.kernel)
        for change in self.changes:
            text = change.apply(text)
        return text

    def fresh_launch(self) -> Launch:
        """The launch that shows the bug."""
        return self.launch or LAUNCHES[self.kernel]()


def _lanes(first, stop=None):
    return range(first, first + 1 if stop is None else stop)


def _ints(*shape):
    return (np.arange(np.prod(shape), dtype=np.int32) * 7 % 31).reshape(shape)


def _planted(name, block, arguments, grid=(1,), shared_bytes=0):
    block = block if isinstance(block, tuple) else (block,)
    return {
        "kernel": name,
        "launch": Launch(grid, block, arguments, {}, shared_bytes=shared_bytes),
    }


def _in_out(n_in, n_out=None, dtype=np.int32):
    return {"a": _ints(n_in).astype(dtype), "out": np.zeros(n_out or n_in, dtype)}


def _vadd_too_far():
    launch = LAUNCHES["vadd"](10_000)
    return launch.with_arguments(n=np.int32(10_100))


RACES = {
    "flash1 without its first barrier": Bug(
        "flash1",
        "race",
        at="dot += sQ",
        changes=(Change(SYNC),),
        array=("sQ", "sK"),
        block=(0, 0, 0),
        threads=_lanes(0, 128),
        other="float4*>(&tile[r][x]) = v",
    ),
    "flash1 without its second barrier": Bug(
        "flash1",
        "race",
        at="float4*>(&tile[r][x]) = v",
        called="load_tile(sQ, Q, i, N)",
        changes=(Change(SYNC, nth=2),),
        array="sQ",
        block=(0, 0, 0),
        threads=_lanes(0, 128),
        other="dot += sQ",
        says=("overwrites",),
    ),
    "flash1 without its first __syncwarp": Bug(
        "flash1",
        "race",
        at="float p = sP[row][key]",
        changes=(Change("__syncwarp();"),),
        array="sP",
        block=(0, 0, 0),
        threads=_lanes(0, 128),
        other="sP[row][quarter + 4 * k] = p",
    ),
    "flash2 without its first barrier": Bug(
        "flash2",
        "race",
        at='asm volatile("ldmatrix',
        called="load_matrices(",
        changes=(Change(SYNC),),
        array=("sQ", "sK"),
        block=(0, 0, 0),
        threads=_lanes(0, 128),
        other='asm volatile("cp.async.cg',
    ),
    "flash2 without its second barrier": Bug(
        "flash2",
        "race",
        at='asm volatile("ldmatrix',
        called="load_transposed(v, &sV",
        changes=(Change(SYNC, nth=2),),
        array="sV",
        block=(0, 0, 0),
        threads=_lanes(0, 128),
        other='asm volatile("cp.async.cg',
    ),
    "softmax without its first barrier": Bug(
        "softmax_rows",
        "race",
        at="m = fmaxf(fmaxf(red[0]",
        changes=(Change(SYNC),),
        array="red",
        threads=_lanes(0, 128),
        other="red[warp] = m;",
    ),
    "softmax without its second barrier": Bug(
        "softmax_rows",
        "race",
        at="red[warp] = l;",
        changes=(Change(SYNC, nth=2),),
        array="red",
        threads=(0, 32, 64, 96),
        other="m = fmaxf(fmaxf(red[0]",
        says=("overwrites",),
    ),
    "softmax without its third barrier": Bug(
        "softmax_rows",
        "race",
        at="l = red[0] + red[1]",
        changes=(Change(SYNC, nth=3),),
        array="red",
        threads=_lanes(0, 128),
        other="red[warp] = l;",
    ),
    "gemm without its first barrier": Bug(
        "gemm",
        "race",
        at="sum += As[ty][x] * Bs[x][tx]",
        changes=(Change(SYNC),),
        array=("As", "Bs"),
        block=(0, 0, 0),
        other="s[ty][tx] = ",
    ),
    "gemm without its second barrier": Bug(
        "gemm",
        "race",
        at="s[ty][tx] = ",
        changes=(Change(SYNC, nth=2),),
        array=("As", "Bs"),
        block=(0, 0, 0),
        other="sum += As[ty][x] * Bs[x][tx]",
        says=("overwrites",),
    ),
    "stencil without its first barrier": Bug(
        "stencil",
        "race",
        at="= now[(t + 127) % 128] + now[t]",
        changes=(Change(SYNC),),
        array="stage",
        threads=_lanes(0, 128),
        other='asm volatile("cp.async.ca',
    ),
    "stencil without its second barrier": Bug(
        "stencil",
        "race",
        at='asm volatile("cp.async.ca',
        changes=(Change(SYNC, nth=2),),
        array="stage",
        threads=_lanes(0, 128),
        other="= now[(t + 127) % 128] + now[t]",
        says=("overwrites",),
    ),
    "a __syncwarp for half of the warp": Bug(
        **_planted("partial_syncwarp", 32, _in_out(32)),
        kind="race",
        array="tile",
        block=(0, 0, 0),
        threads=_lanes(0, 16),
        other="tile[i] = a[i]",
    ),
    "two lanes write one shared cell": Bug(
        **_planted("two_lanes_one_cell", 32, _in_out(32)),
        kind="race",
        array="tile",
        block=(0, 0, 0),
        threads=_lanes(0, 32),
    ),
    "a histogram without atomics": Bug(
        **_planted("counts_without_atomic", 32, _in_out(32)),
        kind="race",
        array="bins",
        block=(0, 0, 0),
        threads=_lanes(0, 32),
    ),
    "a += that needed an atomic": Bug(
        **_planted(
            "lost_update",
            64,
            {"x": np.ones(256, np.float32), "total": np.zeros(1, np.float32)},
            grid=(4,),
        ),
        kind="race",
        array="total",
        offset=0,
    ),
    "a += by one thread of every block": Bug(
        **_planted(
            "one_update_a_block",
            64,
            {"x": np.ones(4, np.float32), "total": np.zeros(1, np.float32)},
            grid=(4,),
        ),
        kind="race",
        array="total",
        offset=0,
        threads=(0,),
    ),
    "a block reads what another writes": Bug(
        **_planted("reads_other_block", 32, _in_out(128), grid=(4,)),
        kind="race",
        at="out[i",
        array="out",
    ),
    "blocks overwrite each other's result": Bug(
        **_planted("blocks_overwrite", 32, _in_out(128, 32), grid=(4,)),
        kind="race",
        array="out",
    ),
}

ASYNC_COPIES = {
    "flash2 without its first wait": Bug(
        "flash2",
        "async copy in flight",
        at='asm volatile("ldmatrix',
        called="load_matrices(",
        changes=(Change(WAIT),),
        array=("sQ", "sK"),
        other='asm volatile("cp.async.cg',
    ),
    "flash2 without its second wait": Bug(
        "flash2",
        "async copy in flight",
        at='asm volatile("ldmatrix',
        called="load_transposed(v, &sV",
        changes=(Change(WAIT, nth=2),),
        array="sV",
        other='asm volatile("cp.async.cg',
    ),
    "flash2 waits for one group too few, first": Bug(
        "flash2",
        "async copy in flight",
        at='asm volatile("ldmatrix',
        called="load_matrices(",
        changes=(Change(WAIT, "wait<2>();"),),
        array=("sQ", "sK"),
        other='asm volatile("cp.async.cg',
    ),
    "flash2 waits for one group too few, second": Bug(
        "flash2",
        "async copy in flight",
        at='asm volatile("ldmatrix',
        called="load_transposed(v, &sV",
        changes=(Change(WAIT, "wait<2>();", nth=2),),
        array="sV",
        other='asm volatile("cp.async.cg',
    ),
    "a store into a cell that a copy is filling": Bug(
        **_planted("overwritten_while_copying", 32, _in_out(32)),
        kind="async copy in flight",
        array="tile",
        threads=_lanes(0, 32),
        other="cp.async.ca",
    ),
    "a misaligned async copy": Bug(
        **_planted(
            "misaligned_async_copy",
            32,
            {"a": np.zeros(600, np.int8), "out": np.zeros((32, 4), np.int32)},
        ),
        kind="misaligned",
        array="a",
        offset=8,
        threads=(0,),
        others=31,
    ),
}

OUT_OF_BOUNDS = {
    "vadd with n too large": Bug(
        "vadd",
        "out of bounds",
        at="out[i] = a[i] + b[i];",
        launch=_vadd_too_far(),
        array=("a", "b"),
        offset=40_000,
        block=(78, 0, 0),
        threads=_lanes(16),
        others=99,
        says=("40,000 bytes", "element 10000"),
    ),
    "K row off by one": Bug(
        "flash1",
        "out of bounds",
        at="const float4*>(rows +",
        called="load_tile(sK, K + d, j, N)",
        changes=(Change("load_tile(sK, K, j, N)", "load_tile(sK, K + d, j, N)"),),
        array="K",
        offset=16_384,
        block=(0, 0, 0),
        threads=_lanes(112),
        others=15,
    ),
    "a store at index -1": Bug(
        **_planted("store_before_array", 32, _in_out(64), grid=(2,)),
        kind="out of bounds",
        array="out",
        offset=-4,
        block=(0, 0, 0),
        threads=(0,),
        others=0,
    ),
    "an overrun through a pointer": Bug(
        **_planted(
            "overrun_through_pointer",
            4,
            {"a": np.ones(40, np.float32), "out": np.zeros(128, np.float32), "n": np.int32(33)},
        ),
        kind="out of bounds",
        array="out",
        offset=512,
        threads=(3,),
    ),
    "a copy that runs four bytes over": Bug(
        **_planted(
            "copy_runs_over",
            32,
            {"a": np.ones(999, np.float32), "out": np.zeros(1000, np.float32), "n": np.int32(999)},
        ),
        kind="out of bounds",
        array="a",
        offset=3984,
        threads=_lanes(25),
    ),
    "an index that would land in another argument": Bug(
        **_planted(
            "lands_in_other_argument",
            32,
            {
                "a": np.ones(32, np.float32),
                "b": np.ones(4096, np.float32),
                "out": np.zeros(32, np.float32),
                "step": np.int64(64),
            },
        ),
        kind="out of bounds",
        array="a",
        offset=256,
        threads=(0,),
        others=31,
    ),
    "a shared index too large": Bug(
        **_planted("shared_index_too_large", 64, _in_out(64, dtype=np.float32)),
        kind="out of bounds",
        array="tile",
        offset=256,
        threads=_lanes(60),
        others=3,
        says=("256 bytes",),
    ),
    "a shared store far too far": Bug(
        **_planted("shared_store_too_far", 64, _in_out(64, dtype=np.float32)),
        kind="out of bounds",
        array="tile",
        offset=1200,
        threads=(0,),
        others=63,
    ),
    "too little dynamic shared memory": Bug(
        **_planted(
            "too_little_dynamic_shared", 64, _in_out(64, dtype=np.float32), shared_bytes=128
        ),
        kind="out of bounds",
        array="tile",
        offset=128,
        threads=_lanes(32),
        others=31,
        says=("128 bytes", "132"),
    ),
    "a local array's index out of range": Bug(
        **_planted("local_index_out_of_range", 32, _in_out(32)),
        kind="out of bounds",
        threads=_lanes(2),  # the first whose element is 8 or more
        says=("local",),
    ),
    "a null pointer": Bug(
        **_planted("null_pointer", 32, {"a": None, "out": np.zeros(32, np.float32)}),
        kind="out of bounds",
        threads=(0,),
        others=31,
        says=("no buffer there", "0x0"),
    ),
    "a wild pointer": Bug(
        **_planted(
            "wild_pointer",
            32,
            {"address": np.uint64(0x123456789A0), "out": np.zeros(32, np.float32)},
        ),
        kind="out of bounds",
        threads=(0,),
        others=31,
        says=("no buffer there", "0x123456789a0"),
    ),
}

DATA = {
    "rows of the tile never loaded": Bug(
        "flash1",
        "uninitialised",
        at="dot += sQ",
        changes=(Change("k < B * d / 4", "k < 24 * d / 4"),),
        array=("sQ", "sK"),
        offset=6528,
        block=(0, 0, 0),
        threads=_lanes(0, 128),
    ),
    "a column of the tile never written": Bug(
        **_planted("column_never_written", (8, 8), _in_out(64, dtype=np.float32)),
        kind="uninitialised",
        array="tile",
        offset=12,
        block=(0, 0, 0),
    ),
    "a float4 at a four-byte offset": Bug(
        **_planted(
            "misaligned_float4",
            32,
            {"a": np.zeros(132, np.float32), "out": np.zeros((32, 4), np.float32)},
        ),
        kind="misaligned",
        array="a",
        offset=4,
        threads=(0,),
        others=31,
        says=("16",),
    ),
    "a float2 at an odd word of shared memory": Bug(
        **_planted(
            "misaligned_shared",
            32,
            {"a": np.zeros(32, np.float32), "out": np.zeros((32, 2), np.float32)},
        ),
        kind="misaligned",
        array="tile",
        offset=4,
        threads=(0,),
    ),
}

CONVERGENCE = {
    "a barrier in a divergent branch": Bug(
        **_planted("divergent_barrier", 64, _in_out(64)),
        kind="divergent barrier",
        block=(0, 0, 0),
    ),
    "a barrier for half of a 2-D block": Bug(
        **_planted("half_block_barrier", (16, 16), _in_out(256)),
        kind="divergent barrier",
        block=(0, 0, 0),
    ),
    "a shuffle in a divergent branch": Bug(
        **_planted("divergent_shuffle", 32, _in_out(32)),
        kind="divergent warp operation",
        threads=_lanes(0, 32),
        says=("0xffffffff",),
    ),
    "a shuffle of the row maximum for half of the warp": Bug(
        "flash1",
        "divergent warp operation",
        at="__shfl_xor_sync(~0u, m_tile, 1)",
        changes=(
            Change(
                "m_tile = fmaxf(m_tile, __shfl_xor_sync(~0u, m_tile, 1));",
                "if (row % 8 < 4) m_tile = fmaxf(m_tile, __shfl_xor_sync(~0u, m_tile, 1));",
            ),
        ),
        says=("0xffffffff",),
    ),
    "a vote in a divergent branch": Bug(
        **_planted("vote_in_branch", 32, _in_out(32)),
        kind="divergent warp operation",
        says=("0xffffffff",),
    ),
    "a lane that is not in its own mask": Bug(
        **_planted("lane_outside_mask", 32, _in_out(32)),
        kind="divergent warp operation",
        threads=_lanes(16, 32),
    ),
    "mma by half of a warp": Bug(
        **_planted(
            "diverged_mma",
            32,
            {"a": np.zeros(32, np.uint32), "out": np.zeros((32, 4), np.float32)},
        ),
        kind="divergent warp operation",
        says=("mma",),
    ),
    "ldmatrix by the lanes that give addresses": Bug(
        **_planted(
            "diverged_ldmatrix",
            32,
            {"a": np.zeros((8, 4), np.uint32), "out": np.zeros(32, np.uint32)},
        ),
        kind="divergent warp operation",
        says=("ldmatrix",),
    ),
}

WAITING = {
    "a named barrier that too few threads reach": Bug(
        **_planted("named_barrier_never_full", 128, {"out": np.zeros(128, np.int32)}),
        kind="deadlock",
        block=(0, 0, 0),
        says=("96",),
    ),
    "two warps that wait for each other": Bug(
        **_planted("waits_for_each_other", 64, {"out": np.zeros(64, np.int32)}),
        kind="deadlock",
        block=(0, 0, 0),
    ),
    "a named barrier for part of a warp": Bug(
        **_planted("named_barrier_count", 128, {"out": np.zeros(128, np.int32)}),
        kind="barrier",
        says=("100", "32"),
    ),
    "a trap": Bug(
        **_planted("traps", 32, _in_out(32)),
        kind="trap",
        threads=(1,),
    ),
}

CATALOGUE = RACES | ASYNC_COPIES | OUT_OF_BOUNDS | DATA | CONVERGENCE | WAITING

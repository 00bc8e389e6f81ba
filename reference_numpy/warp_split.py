"""How the warps of one block share a tile: split K (FlashAttention-1) or split Q (version 2).

FlashAttention-2, section 3.3. Warps exchange data only through shared memory, so the split
decides how much crosses it, as HBM traffic is decided by the loops.
"""


def shared_memory_elements(Br: int, Bc: int, d: int, warps: int) -> dict[str, int]:
    """Elements that one tile of attention moves through shared memory, read plus written.

    A warp's slice of what the outer loop holds stays in its registers for the whole inner loop
    and costs nothing a tile. Everything else a warp needs, it reads from shared memory.

    Split K (K and V in the outer loop): each warp holds Bc/warps keys. It reads all Br queries,
    and finds for each of them a state (m, l, o) that knows only its own keys. Every warp writes
    its states to shared memory, and all are read back to be merged.

    Split Q (Q in the outer loop): each warp holds Br/warps queries. It reads all Bc keys and
    values, and owns its rows of O: nothing is exchanged.

    Args:
        Br, Bc, d: query rows, key rows and head dimension of the tile.
        warps: how many warps share it, 2 or more.

    Returns:
        {"split_k": elements, "split_q": elements}

    Source: FlashAttention-2, section 3.3, which describes the two; the counts are ours.
    """
    ### BEGIN SOLUTION
    states = Br * (d + 2)  # o, m and l of every query, as one warp knows them
    split_k = warps * Br * d + 2 * warps * states
    split_q = warps * 2 * Bc * d
    return {"split_k": split_k, "split_q": split_q}
    ### END SOLUTION

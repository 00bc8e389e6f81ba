"""How the warps of one block share a tile: split K (FlashAttention-1) or split Q (version 2).

FlashAttention-2, section 3.3. Warps exchange data only through shared memory, so the split
decides how much crosses it, as HBM traffic is decided by the loops.
"""


def shared_memory_elements(Br: int, Bc: int, d: int, warps: int) -> dict[str, int]:
    """Elements that one tile of attention moves through shared memory, read plus written.

    Split K: each warp takes Bc/warps keys. It reads all of Q and its slice of K and V, ends with
    a partial O of Br×d that only sums over its own keys, writes that to shared memory, and the
    partial sums of all warps are read back and added.

    Split Q: each warp takes Br/warps queries, which stay in its registers over all tiles. It
    reads all of K and V, and owns its rows of O: nothing is exchanged.

    Args:
        Br, Bc, d: query rows, key rows and head dimension of the tile.
        warps: how many warps share it.

    Returns:
        {"split_k": elements, "split_q": elements}
    """
    ### BEGIN SOLUTION
    split_k = warps * Br * d + 2 * Bc * d + 2 * warps * Br * d
    split_q = warps * 2 * Bc * d
    return {"split_k": split_k, "split_q": split_q}
    ### END SOLUTION

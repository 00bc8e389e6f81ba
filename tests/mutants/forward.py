"""Wrong forward passes: the twelve classic ones in both versions, and masks, LSE, lengths."""

from tests.mutants.mutant import Mutant

BF16 = "__import__('ml_dtypes').bfloat16"


def _flash2(name: str, changes: dict[str, str], fixture: str, cause: str = "") -> Mutant:
    return Mutant(name, "flash2_forward", changes, fixture, cause=cause)


def _flash1(name: str, changes: dict[str, str], fixture: str, cause: str = "") -> Mutant:
    return Mutant(name, "flash1_forward", changes, fixture, cause=cause)


_S = "s = scale * (q @ K[cols].T)"
_MASK = "s = mask_scores(s, rows, cols, Nq, Nk)"
_M_NEW = "m_new = np.maximum(m, s.max(axis=1))"
_P = "p = shifted_exp(s, m_new[:, None])"
_RESCALE = "rescale = shifted_exp(m, m_new)"
_L = "l = rescale * l + p.sum(axis=1)"
_O = "o = rescale[:, None] * o + p @ V[cols]"
_LOOP = "for cols in tiles(Nk, Bc):"

FLASH2 = [
    # The twelve that public tests let through, or nearly.
    _flash2("no_max", {_M_NEW: "m_new = np.zeros_like(m)"}, "rising", "maximum is not subtracted"),
    _flash2(
        "m_init_0", {"-np.inf, np.float32)": "0.0, np.float32)"}, "deep_negative", "m starts at 0"
    ),
    _flash2(
        "freeze_first_max",
        {_M_NEW: "m_new = s.max(axis=1) if cols.start == 0 else m"},
        "rising",
        "maximum of the first tile",
    ),
    _flash2("no_rescale", {_RESCALE: "rescale = np.ones_like(m)"}, "normal", "neither l nor O"),
    _flash2("no_O_rescale", {_O: "o = o + p @ V[cols]"}, "normal", "O is not multiplied"),
    _flash2("no_l_rescale", {_L: "l = l + p.sum(axis=1)"}, "normal", "l is not multiplied"),
    _flash2(
        "drop_mid_tile",
        {_S: f"{_S}\n            if cols.start == Bc * (-(-Nk // Bc) // 2): continue"},
        "normal",
        "in the middle is skipped",
    ),
    _flash2(
        "drop_last_tile",
        {_S: f"{_S}\n            if cols.stop == Nk: continue"},
        "normal",
        "last tile of keys is skipped",
    ),
    _flash2(
        "pad_score_0",
        {
            "if causal:\n                s = mask": "s = np.pad(s, ((0, 0), (0, Bc - s.shape[1])))\n"
            "            if causal:\n                s[:, : cols.stop - cols.start] = mask",
            "_scores(s, rows": "_scores(s[:, : cols.stop - cols.start], rows",
            "p @ V[cols]": "p[:, : cols.stop - cols.start] @ V[cols]",
        },
        "ragged",
        "padded keys keep score 0",
    ),
    _flash2("p_bf16", {_P: f"{_P}.astype({BF16}).astype(np.float32)"}, "normal", "P is rounded"),
    _flash2(
        "acc_bf16",
        {
            "m = m_new\n": f"m = m_new\n            o = o.astype({BF16}).astype(np.float32)\n"
            f"            l = l.astype({BF16}).astype(np.float32)\n"
        },
        "normal",
        "16-bit type between tiles",
    ),
    _flash2("no_scale", {_S: "s = q @ K[cols].T"}, "normal", "not multiplied by scale"),
    # Masks and lengths.
    _flash2("scale_twice", {_S: "s = scale * scale * (q @ K[cols].T)"}, "normal", "scale twice"),
    _flash2("no_mask", {_MASK: "pass"}, "causal", "mask is not applied"),
    _flash2(
        "causal_off_by_1",
        {_MASK: "s = mask_scores(s, rows, cols, Nq + 1, Nk)"},
        "causal",
        "hides the diagonal",
    ),
    _flash2(
        "causal_top_left",
        {_MASK: "s = mask_scores(s, rows, cols, Nq, Nq)"},
        "causal_more_keys",
        "top-left",
    ),
    _flash2(
        "drop_ragged_tile", {_LOOP: "for cols in tiles(Nk - Nk % Bc, Bc):"}, "ragged", "skipped"
    ),
    _flash2("keys_as_many_as_queries", {_LOOP: "for cols in tiles(Nq, Bc):"}, "more_keys"),
    _flash2(
        "masked_rows_are_nan",
        {"p = shifted_exp(s, m_new[:, None])": "p = np.exp(s - m_new[:, None])"},
        "masked_rows",
    ),
    _flash2("unguarded_division", {"divide_rows(o, l)": "o / l[:, None]"}, "masked_rows"),
    _flash2("no_division", {"divide_rows(o, l)": "o"}, "normal", "not divided by l"),
    _flash2(
        "inverse_rescale",
        {_RESCALE: "rescale = np.where(m == -np.inf, 0, np.exp(m_new - m))"},
        "normal",
        "upside down",
    ),
    _flash2(
        "scale_of_its_own",
        {_S: "s = np.float32(q.shape[1] ** -0.5) * (q @ K[cols].T)"},
        "other_scale",
    ),
    _flash2("scale_without_sign", {_S: "s = abs(scale) * (q @ K[cols].T)"}, "other_scale"),
    _flash2("one_max_for_the_tile", {_M_NEW: "m_new = np.maximum(m, s.max())"}, "row_spread"),
    _flash2(
        "offset_in_whole_tiles",
        {_MASK: "s = mask_scores(s, rows, cols, Nq, Nq + (Nk - Nq) // 32 * 32)"},
        "causal_more_keys",
    ),
    # The LSE.
    _flash2("LSE_missing", {"LSE[rows] = log_sum_exp(m, l)": "pass"}, "normal", "never stored"),
    _flash2("LSE_is_m", {"log_sum_exp(m, l)": "m"}, "normal", "only m was stored"),
    _flash2("LSE_is_ln_l", {"log_sum_exp(m, l)": "np.log(l)"}, "normal", "only ln l was stored"),
    _flash2("LSE_base_2", {"log_sum_exp(m, l)": "m + np.log2(l)"}, "normal", "base 2"),
    _flash2(
        "last_rows_missing",
        {"O[rows] = ": "if rows.stop < Nq: O[rows] = "},
        "ragged",
        "never stored",
    ),
]

_TILE_S = "s = scale * (q @ k.T)"
FLASH1 = [
    _flash1(
        "no_max", {"m_tile = s.max(axis=1)": "m_tile = np.zeros(len(s), np.float32)"}, "rising"
    ),
    _flash1(
        "m_init_0",
        {"m_tile = s.max(axis=1)": "m_tile = np.maximum(s.max(axis=1), 0)"},
        "deep_negative",
    ),
    _flash1(
        "freeze_first_max",
        {
            "m_tile = s.max(axis=1)": "m_tile = s.max(axis=1) if first else m[rows]",
            "o_old, l_old, m_old = O[rows], l[rows], m[rows]": "o_old, l_old, m_old = "
            "O[rows], l[rows], m_tile",
        },
        "rising",
        "maximum of the first tile",
    ),
    _flash1(
        "no_rescale",
        {"keep = shifted_exp(m_old, m_new) * l_old": "keep = l_old"},
        "normal",
    ),
    _flash1(
        "no_O_rescale",
        {"divide_rows(keep[:, None] * o_old": "divide_rows(l_old[:, None] * o_old"},
        "normal",
    ),
    _flash1(
        "no_l_rescale", {"l_new = keep + join * l_tile": "l_new = l_old + join * l_tile"}, "normal"
    ),
    _flash1(
        "not_multiplied_back",
        {
            "divide_rows(keep[:, None] * o_old": "divide_rows(shifted_exp(m_old, m_new)[:, None] * o_old"
        },
        "normal",
        "not multiplied back",
    ),
    _flash1(
        "drop_mid_tile", {_TILE_S: f"{_TILE_S} if cols.start != Bc else q @ k.T - 1e9"}, "normal"
    ),
    _flash1(
        "drop_last_tile",
        {
            "for cols in tiles(Nk, Bc):": "for cols in list(tiles(Nk, Bc))[: max(1, -(-Nk // Bc) - 1)]:"
        },
        "normal",
    ),
    _flash1(
        "pad_score_0",
        {
            _TILE_S: "s = np.pad(scale * (q @ k.T), ((0, 0), (0, Bc - len(k))))",
            "s = mask_scores(s, rows, cols, Nq, Nk)": "s[:, : len(k)] = "
            "mask_scores(s[:, : len(k)], rows, cols, Nq, Nk)",
            "(p @ v)": "(p[:, : len(v)] @ v)",
        },
        "ragged",
        "padded keys keep score 0",
    ),
    _flash1(
        "p_bf16",
        {
            "p = shifted_exp(s, m_tile[:, None])": "p = shifted_exp(s, m_tile[:, None])"
            f".astype({BF16}).astype(np.float32)"
        },
        "normal",
    ),
    _flash1(
        "acc_bf16",
        {
            "m_old = O[rows], l[rows], m[rows]": "m_old = "
            f"O[rows].astype({BF16}).astype(np.float32), l[rows], m[rows]"
        },
        "normal",
    ),
    _flash1("no_scale", {_TILE_S: "s = q @ k.T"}, "normal", "not multiplied by scale"),
    _flash1(
        "no_mask",
        {"s = mask_scores(s, rows, cols, Nq, Nk)": "pass"},
        "causal",
        "mask is not applied",
    ),
    _flash1(
        "LSE_only_after_the_very_last_tile",
        {
            "if cols.stop == Nk or (causal and fully_masked(rows, after, Nq, Nk)):": "if cols.stop == Nk:"
        },
        "causal",
        "never stored",
    ),
    _flash1(
        "reads_before_writing",
        {"if first:\n                o_old": "if False:\n                o_old"},
        "normal",
        "is read before it is stored",
    ),
]

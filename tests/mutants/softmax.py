"""Wrong softmaxes, joins, first kernels and predictions."""

from tests.mutants.mutant import Mutant

ONLINE = [
    Mutant(
        "a_column_for_a_number",
        "online_softmax",
        {"return m, l, p_tiles": "return m[..., None], l, p_tiles"},
        "normal",
    ),
    Mutant(
        "inverse_rescale",
        "online_softmax",
        {"shifted_exp(m, m_new)": "np.where(m == -np.inf, 0, np.exp(m_new - m))"},
        "rising",
        cause="not its inverse",
    ),
    Mutant(
        "no_rescale",
        "online_softmax",
        {"l = shifted_exp(m, m_new) * l + ": "l = l + "},
        "normal",
        cause="not multiplied by e^",
    ),
    Mutant(
        "m_init_0",
        "online_softmax",
        {"m, l = np.float32(-np.inf), np.float32(0)": "m, l = np.float32(0), np.float32(0)"},
        "deep_negative",
        cause="m starts at 0",
    ),
    Mutant(
        "frozen_max",
        "online_softmax",
        {
            "m_new = np.maximum(m, s.max(axis=-1))": "m_new = s.max(axis=-1) if np.all(m == -np.inf) else m"
        },
        "rising",
    ),
    Mutant(
        "last_max",
        "online_softmax",
        {"m_new = np.maximum(m, s.max(axis=-1))": "m_new = s.max(axis=-1)"},
        "falling",
        cause="last tile only",
    ),
    Mutant(
        "local_probabilities",
        "online_softmax",
        {
            "[shifted_exp(s, m[..., None]) / l[..., None] for": "[shifted_exp(s, s.max(axis=-1)[..., None]) / l[..., None] for"
        },
        "normal",
    ),
    Mutant(
        "undivided",
        "online_softmax",
        {"[shifted_exp(s, m[..., None]) / l[..., None] for": "[shifted_exp(s, m[..., None]) for"},
        "normal",
    ),
    Mutant(
        "nan_on_masked_tile",
        "online_softmax",
        {"p = shifted_exp(s, m_new[..., None])": "p = np.exp(s - m_new[..., None])"},
        "masked_tile",
        cause="NaN",
    ),
    Mutant(
        "two_results", "online_softmax", {"return m, l, p_tiles": "return m, p_tiles"}, "normal"
    ),
]
MERGE = [
    Mutant(
        "two_empty_parts_start_at_0",
        "merge",
        {
            "m = np.maximum(m_a, m_b)": "m = np.where((l_a == 0) & (l_b == 0), 0, np.maximum(m_a, m_b))"
        },
        "no_keys",
    ),
    Mutant("max_of_the_first", "merge", {"m = np.maximum(m_a, m_b)": "m = m_a"}, "rising"),
    Mutant(
        "l_not_scaled", "merge", {"l = scale_a * l_a + scale_b * l_b": "l = l_a + l_b"}, "normal"
    ),
    Mutant(
        "o_not_scaled",
        "merge",
        {"o = scale_a[..., None] * o_a + scale_b[..., None] * o_b": "o = o_a + o_b"},
        "normal",
    ),
    Mutant("averaged", "merge", {"return m, l, o": "return m, l, o / l[..., None]"}, "normal"),
    Mutant(
        "nan_without_keys",
        "merge",
        {
            "scale_a, scale_b = shifted_exp(m_a, m), shifted_exp(m_b, m)": "scale_a, scale_b = np.exp(m_a - m), np.exp(m_b - m)"
        },
        "no_keys",
        cause="NaN",
    ),
    Mutant(
        "factors_swapped",
        "merge",
        {"shifted_exp(m_a, m), shifted_exp(m_b, m)": "shifted_exp(m_b, m), shifted_exp(m_a, m)"},
        "normal",
    ),
]
FIRST_KERNELS = [
    Mutant(
        "max_at_least_0",
        "softmax_one_kernel",
        {"x.max(axis=1, keepdims=True)": "np.maximum(x.max(axis=1, keepdims=True), 0)"},
        "deep_negative",
    ),
    Mutant(
        "no_max",
        "softmax_one_kernel",
        {"e = np.exp(x - x.max(axis=1, keepdims=True))": "e = np.exp(x)"},
        "large_values",
        cause="exp overflowed",
    ),
    Mutant(
        "wrong_axis",
        "softmax_one_kernel",
        {
            "Y[rows] = e / e.sum(axis=1, keepdims=True)": "Y[rows] = e / e.sum(axis=0, keepdims=True)"
        },
        "normal",
    ),
    Mutant(
        "not_divided",
        "softmax_three_kernels",
        {" / L[rows][:, None]": " + 0 * L[rows][:, None]"},
        "normal",
    ),
    Mutant(
        "subtracts",
        "elementwise_add",
        {"Z[rows] = X[rows] + Y[rows]": "Z[rows] = X[rows] - Y[rows]"},
        "normal",
    ),
    Mutant(
        "predicts_elements",
        "predicted_bytes",
        {'"elementwise_add": 4 * ': '"elementwise_add": 1 * '},
        "",
        cause="elements were counted",
    ),
    Mutant("forgets_the_maxima", "predicted_bytes", {"3 * N + 2 * N": "2 * N"}, ""),
]
THREE_KERNELS = [
    Mutant(
        "K_kept_where_it_does_not_fit",
        "three_kernels",
        {"K = K[:] if machine.fits(K) else K": "K = K[:]"},
        "small_sram",
    ),
    Mutant(
        "one_max_for_the_tile",
        "three_kernels",
        {"s.max(axis=1, keepdims=True)": "s.max()"},
        "row_spread",
    ),
    Mutant(
        "no_max",
        "three_kernels",
        {"p = np.exp(s - s.max(axis=1, keepdims=True))": "p = np.exp(s)"},
        "rising",
        cause="maximum is not subtracted",
    ),
    Mutant(
        "no_scale",
        "three_kernels",
        {"S[rows, cols] = scale * (": "S[rows, cols] = ("},
        "normal",
        cause="not multiplied by scale",
    ),
    Mutant(
        "tile_softmax",
        "three_kernels",
        {"P[rows] = p / p.sum(axis=1, keepdims=True)": "P[rows] = p / p.sum()"},
        "normal",
    ),
    Mutant(
        "last_keys_missing",
        "three_kernels",
        {
            "o += P[rows, cols] @ V[cols]": "o += P[rows, cols] @ V[cols] * (cols.stop < len(V) or cols.start == 0)"
        },
        "one_hot_values",
        cause="weights of key tiles [3]",
    ),
]
WARP_SPLIT = [
    Mutant(
        "exchange_counted_once",
        "shared_memory_elements",
        {"2 * warps * states": "warps * states"},
        "",
    ),
    Mutant(
        "Br_for_Bc",
        "shared_memory_elements",
        {"split_q = warps * 2 * Bc * d": "split_q = warps * 2 * Br * d"},
        "",
    ),
    Mutant(
        "one_warp_only",
        "shared_memory_elements",
        {"split_q = warps * 2 * Bc * d": "split_q = 2 * Bc * d"},
        "",
        cause="the factor warps is missing",
    ),
]

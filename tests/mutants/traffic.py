"""Exact results at the wrong price: one array moves too much, or too little to be true."""

from tests.mutants.mutant import Mutant


def _mutant(exercise: str, name: str, changes: dict[str, str], array: str, fixture: str = "normal"):
    return Mutant(name, exercise, changes, fixture, array=array)


FLASH2 = [
    _mutant(
        "flash2_forward", "Q_in_the_inner_loop", {"s = scale * (q @": "s = scale * (Q[rows] @"}, "Q"
    ),
    _mutant(
        "flash2_forward",
        "K_loaded_twice",
        {"s = scale * (q @ K[cols].T)": "K[cols]; s = scale * (q @ K[cols].T)"},
        "K",
    ),
    _mutant(
        "flash2_forward",
        "O_stored_every_tile",
        {"m = m_new\n": "m = m_new\n            O[rows] = divide_rows(o, l)\n"},
        "O",
    ),
    _mutant(
        "flash2_forward",
        "LSE_stored_every_tile",
        {"m = m_new\n": "m = m_new\n            LSE[rows] = log_sum_exp(m, l)\n"},
        "LSE",
    ),
    _mutant(
        "flash2_forward",
        "masked_tiles_visited",
        {"                break\n": "                pass\n"},
        "K",
        "causal",
    ),
    _mutant(
        "flash2_forward",
        "K_kept_on_chip",
        {"Nq, Nk = Q.shape[0], K.shape[0]": "Nq, Nk = Q.shape[0], K.shape[0]\n    K = K[:]"},
        "K",
    ),
    _mutant("flash2_forward", "half_the_tile", {"tiles(Nq, Br)": "tiles(Nq, Br // 2)"}, "V"),
    _mutant(
        "flash2_forward",
        "O_kept_in_HBM",
        {"O[rows] = divide_rows(o, l)": "O[rows] = o\n        O[rows] = divide_rows(O[rows], l)"},
        "O",
    ),
]

FLASH1 = [
    _mutant(
        "flash1_forward",
        "K_in_the_inner_loop",
        {"s = scale * (q @ k.T)": "s = scale * (q @ K[cols].T)"},
        "K",
    ),
    _mutant(
        "flash1_forward",
        "Q_loaded_twice",
        {"s = scale * (q @ k.T)": "s = scale * (Q[rows] @ k.T)"},
        "Q",
    ),
    _mutant(
        "flash1_forward",
        "LSE_stored_every_pass",
        {"if cols.stop == Nk or (causal and fully_masked(rows, after, Nq, Nk)):": "if True:"},
        "LSE",
    ),
    _mutant(
        "flash1_forward",
        "m_read_twice",
        {
            "m_new = np.maximum(m_old, m_tile)": "m_new = np.maximum(m_old if first else m[rows], m_tile)"
        },
        "m",
    ),
    _mutant(
        "flash1_forward",
        "masked_tiles_visited",
        {
            "if causal and fully_masked(rows, cols, Nq, Nk):": "if causal and fully_masked(rows, slice(0, 1), Nq, Nk):"
        },
        "Q",
        "causal",
    ),
]

BACKWARD = [
    _mutant(
        "flash_backward",
        "K_in_the_inner_loop",
        {"s = scale * (q @ k.T)": "s = scale * (q @ K[cols].T)"},
        "K",
    ),
    _mutant("flash_backward", "dO_loaded_twice", {"dp = do @ v.T": "dp = dO[rows] @ v.T"}, "dO"),
    _mutant(
        "flash_backward",
        "D_recomputed_each_time",
        {"dp - D[rows][:, None]": "dp - (do * O[rows]).sum(axis=1)[:, None]"},
        "O",
    ),
    _mutant(
        "flash_backward",
        "dK_stored_every_tile",
        {"dk += scale * (ds.T @ q)": "dk += scale * (ds.T @ q); dK[cols] = dk"},
        "dK",
    ),
    _mutant(
        "flash_backward",
        "dQ_read_twice",
        {
            "dQ[rows] = dq + scale * (ds @ k)": "dQ[rows] = (0 if first else 0 * dQ[rows]) + dq + scale * (ds @ k)"
        },
        "dQ",
    ),
    _mutant(
        "flash_backward",
        "LSE_loaded_twice",
        {
            "shifted_exp(s, LSE[rows][:, None])": "shifted_exp(s, LSE[rows][:, None] + 0 * np.maximum(LSE[rows], -1)[:, None])"
        },
        "LSE",
    ),
    _mutant(
        "flash_backward",
        "Q_kept_on_chip",
        {
            "q, do = Q[rows], dO[rows]": "q, do = (Q[rows] if first else _kept[rows.start]), dO[rows]\n            globals().setdefault('_kept', {})[rows.start] = q.copy()"
        },
        "Q",
    ),
]

THREE_KERNELS = [
    _mutant(
        "three_kernels",
        "Q_in_the_inner_loop",
        {"S[rows, cols] = scale * (q @": "S[rows, cols] = scale * (Q[rows] @"},
        "Q",
    ),
    _mutant(
        "three_kernels", "S_read_twice", {"p = np.exp(s - s.max": "p = np.exp(S[rows] - s.max"}, "S"
    ),
    _mutant(
        "three_kernels",
        "P_fused_away",
        {
            "P[rows] = p / p.sum(axis=1, keepdims=True)": "P[rows] = p / p.sum(axis=1, keepdims=True); P[rows, :1] = P[rows, :1]"
        },
        "P",
    ),
    _mutant(
        "three_kernels",
        "O_accumulated_in_HBM",
        {"o += P[rows, cols] @ V[cols]": "o += P[rows, cols] @ V[cols]; O[rows] = o"},
        "O",
    ),
    _mutant(
        "three_kernels",
        "K_loaded_though_it_fits",
        {"K = K[:] if machine.fits(K) else K": "pass"},
        "K",
    ),
]

FIRST_KERNELS = [
    _mutant(
        "elementwise_add",
        "X_loaded_twice",
        {"Z[rows] = X[rows] + Y[rows]": "X[rows]; Z[rows] = X[rows] + Y[rows]"},
        "X",
    ),
    _mutant(
        "softmax_one_kernel",
        "X_loaded_twice",
        {"e = np.exp(x - x.max": "e = np.exp(X[rows] - x.max"},
        "X",
    ),
    _mutant(
        "softmax_three_kernels",
        "fused",
        {
            "Y[rows] = np.exp(X[rows] - M[rows][:, None]) / L[rows][:, None]": "e = np.exp(X[rows] - X[rows].max(axis=1)[:, None]); Y[rows] = e / e.sum(axis=1)[:, None]"
        },
        "M",
    ),
]

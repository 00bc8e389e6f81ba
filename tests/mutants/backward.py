"""Wrong backward passes."""

from tests.mutants.mutant import Mutant


def _mutant(name: str, changes: dict[str, str], fixture: str = "normal", cause: str = "") -> Mutant:
    return Mutant(name, "flash_backward", changes, fixture, cause=cause)


_S = "s = scale * (q @ k.T)"
_P = "p = shifted_exp(s, LSE[rows][:, None])"
_DS = "ds = p * (dp - D[rows][:, None])"
_DQ = "dQ[rows] = dq + scale * (ds @ k)"
_DK = "dk += scale * (ds.T @ q)"
_DV = "dv += p.T @ do"

BACKWARD = [
    _mutant("D_left_out", {_DS: "ds = p * dp; D[rows]"}, cause="D is left out"),
    _mutant("D_added", {_DS: "ds = p * (dp + D[rows][:, None])"}, cause="wrong sign"),
    _mutant("dS_without_P", {_DS: "ds = dp - D[rows][:, None]"}, cause="not multiplied by P"),
    _mutant(
        "dQ_without_scale", {_DQ: "dQ[rows] = dq + ds @ k"}, cause="dQ is not multiplied by scale"
    ),
    _mutant("dK_without_scale", {_DK: "dk += ds.T @ q"}, cause="dK is not multiplied by scale"),
    _mutant("dV_with_scale", {_DV: "dv += scale * (p.T @ do)"}, cause="only S carries it"),
    _mutant("S_without_scale", {_S: "s = q @ k.T"}),
    _mutant("dQ_overwritten", {_DQ: "dQ[rows] = scale * (ds @ k)"}, cause="has to collect"),
    _mutant("dK_overwritten", {_DK: "dk = scale * (ds.T @ q)"}),
    _mutant("dV_overwritten", {_DV: "dv = p.T @ do"}),
    _mutant(
        "dV_from_dS",
        {_DV: "dv += (p * (do @ v.T - D[rows][:, None])).T @ do"},
        cause="dS where it needs P",
    ),
    _mutant("LSE_ignored", {_P: "p = shifted_exp(s, s.max(axis=1)[:, None]); LSE[rows]"}),
    _mutant(
        "exp_of_unshifted_scores",
        {_P: "p = np.exp(s) / np.exp(s).sum(axis=1)[:, None]; LSE[rows]"},
        "rising",
    ),
    _mutant(
        "no_mask",
        {"s = mask_scores(s, rows, cols, Nq, Nk)": "pass"},
        "causal",
        "mask is not applied",
    ),
    _mutant(
        "mask_top_left",
        {"s = mask_scores(s, rows, cols, Nq, Nk)": "s = mask_scores(s, rows, cols, Nq, Nq)"},
        "causal_more_keys",
    ),
    _mutant(
        "dQ_read_before_written",
        {"dq = np.float32(0) if first else dQ[rows]": "dq = dQ[rows]"},
        cause="is read before it is stored",
    ),
    _mutant("masked_rows_nan", {_P: "p = np.exp(s - LSE[rows][:, None])"}, "masked_rows"),
    _mutant("masked_rows_dQ_missing", {"dQ[rows] = 0": "pass"}, "masked_rows", "never stored"),
    _mutant(
        "last_queries_missing",
        {"q, do = Q[rows], dO[rows]": "q, do = Q[rows], dO[rows] * (rows.stop < Nq or Nq == 1)"},
        "ragged",
    ),
    _mutant("D_from_dO_alone", {"(dO[rows] * O[rows])": "(dO[rows] * dO[rows] + 0 * O[rows])"}),
    _mutant(
        "last_keys_missing",
        {"dK[cols], dV[cols] = dk, dv": "dV[cols] = dv\n        if cols.stop < Nk: dK[cols] = dk"},
        "normal",
        "never stored",
    ),
    _mutant(
        "float16_dS", {_DS: f"{_DS}\n            ds = ds.astype(np.float16).astype(np.float32)"}
    ),
]

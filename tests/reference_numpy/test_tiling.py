"""Index arithmetic of tiles and of the causal mask."""

import numpy as np
import pytest

from reference_numpy.oracle import causal_mask
from reference_numpy.tiling import cdiv, fully_masked, mask_scores, tiles, visible


@pytest.mark.parametrize(("a", "b", "quotient"), [(0, 4, 0), (1, 4, 1), (4, 4, 1), (5, 4, 2)])
def test_cdiv_rounds_up(a, b, quotient):
    assert cdiv(a, b) == quotient


@pytest.mark.parametrize("N", [0, 1, 31, 32, 33, 97])
@pytest.mark.parametrize("B", [1, 32, 100])
def test_tiles_cover_every_row_once(N, B):
    rows = [row for tile in tiles(N, B) for row in range(tile.start, tile.stop)]
    assert rows == list(range(N))
    assert len(list(tiles(N, B))) == cdiv(N, B)


def test_a_tile_of_no_rows_is_refused():
    with pytest.raises(ValueError, match="B = 0"):
        list(tiles(4, 0))


@pytest.mark.parametrize(("Nq", "Nk"), [(20, 20), (7, 20), (20, 7), (1, 5), (5, 1)])
def test_tile_masks_put_together_are_the_whole_mask(Nq, Nk):
    whole = causal_mask(Nq, Nk)
    for rows in tiles(Nq, 6):
        for cols in tiles(Nk, 4):
            part = visible(rows, cols, Nq, Nk)
            np.testing.assert_array_equal(part, whole[rows, cols])
            assert fully_masked(rows, cols, Nq, Nk) == (not part.any())
            masked = mask_scores(np.zeros(part.shape, np.float32), rows, cols, Nq, Nk)
            np.testing.assert_array_equal(np.isneginf(masked), ~part)
            assert masked.dtype == np.float32

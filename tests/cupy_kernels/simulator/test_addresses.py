"""Pattern + offset arithmetic equals plain integer arithmetic on every lane."""

import numpy as np
import pytest

from cupy_kernels.simulator.addresses import AddressBook, Geometry

SHAPES = [(1, 1), (1, 64), (3, 1), (3, 64)]


def a_book():
    return AddressBook(Geometry(3, 64))


@pytest.mark.parametrize("left", SHAPES)
@pytest.mark.parametrize("right", SHAPES)
def test_sums_and_differences(left, right):
    rng, book = np.random.default_rng(0), a_book()
    a, b = (rng.integers(-(2**40), 2**40, shape) for shape in (left, right))
    for combine, plain in ((book.add, a + b), (book.sub, a - b)):
        pair = combine(*book.root(a), *book.root(b))
        assert (book.value(*pair, "i8") == plain).all()


def test_32_bit_values_wrap():
    book = a_book()
    p, o = book.root(np.array([[2**31 - 4] * 64], np.int32))
    assert (book.value(p, o + 8, "i4") == -(2**31) + 4).all()


def test_shifted_vectors_share_one_pattern():
    book = a_book()
    lanes = np.arange(64)[None] * 4
    first, second = book.root(lanes + 1000), book.root(lanes + 5000)
    assert first[0] is second[0]
    assert (first[1], second[1]) == (1000, 5000)


def test_merge_keeps_the_other_lanes():
    book, lanes = a_book(), np.arange(64)[None] % 2 == 0
    old, new = book.root(np.arange(64)[None]), book.root(np.arange(64)[None] * 10)
    merged = book.value(*book.merge(lanes, new, old), "i8")
    assert (merged == np.where(lanes, np.arange(64) * 10, np.arange(64))).all()


def test_under_a_mask_only_active_lanes_count():
    book = a_book()
    mask = book.mask(np.arange(64)[None] >= 32)
    assert (mask.count, mask.warps) == (96, 3)
    p, low = book.under(book.root(np.arange(64)[None] * 4)[0], mask)
    assert low == 128
    assert p.span == 124

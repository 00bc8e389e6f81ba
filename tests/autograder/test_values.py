import ml_dtypes
import numpy as np
import pytest

from autograder.values import NotPlain, pack, plain, unpack

VALUES = [
    None,
    True,
    3,
    -2.5,
    float("inf"),
    "µ ✓",
    [1, [2, (3, {"a": 4, 5: "b"})]],
    np.arange(12, dtype=np.int16).reshape(3, 4),
    np.zeros((0, 7), np.float32),
    np.array(2.5),
    np.float32(1.5),
    np.ones(3, ml_dtypes.bfloat16),
    (np.ones((2, 2)), [np.zeros(1, bool)]),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_round_trip(value):
    got = plain(value)
    assert type(got) is type(value)
    assert repr(got) == repr(value)


def test_ellipsis_means_nothing():
    assert plain(...) is None


def test_arrays_arrive_as_writable_copies():
    x = np.ones(3)
    y = plain(x)
    y[0] = 5
    assert x[0] == 1


def test_strided_arrays_keep_their_values():
    x = np.arange(24.0).reshape(4, 6)
    np.testing.assert_array_equal(plain(x[::2, ::-1].T), x[::2, ::-1].T)


def test_subclasses_become_base_classes():
    class Clever(np.ndarray):
        def __array_ufunc__(self, *_, **__):
            return True

    class Text(str):
        pass

    assert type(plain(np.ones(2).view(Clever))) is np.ndarray
    assert type(plain(Text("a"))) is str


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, 1j, b"bytes", np.array(["a"]), {None: 1}, np.array([{}])],
    ids=lambda value: type(value).__name__,
)
def test_other_values_do_not_travel(value):
    with pytest.raises(NotPlain):
        pack(value)


@pytest.mark.parametrize(
    ("tree", "body"),
    [
        ({"array": ["float64", [2]]}, b"x" * 15),  # too little
        ({"array": ["float64", [2]]}, b"x" * 17),  # too much
        ({"array": ["float64", [-2]]}, b""),
        ({"array": ["float64", [2.0]]}, b"x" * 16),
        ({"array": ["float64", [True]]}, b"x" * 8),
        ({"array": ["float64", [2**39, 2**39, 0, 2**39]]}, b"x"),
        ({"array": ["float64", [1] * 40]}, b"x" * 8),
        ({"array": ["object", [1]]}, b"x" * 8),
        ({"array": [["float64"], [1]]}, b"x" * 8),
        ({"array": ["float64"]}, b"x" * 8),
        ({"scalar": ["float64", [1]]}, b"x" * 8),
        ({"list": 3}, b""),
        ({"dict": [[1]]}, b""),
        ({"dict": [[[1], 2]]}, b""),
        ({"pickle": []}, b""),
        ({"list": [], "tuple": []}, b""),
        ([1, 2], b""),
    ],
    ids=repr,
)
def test_what_does_not_fit_is_refused(tree, body):
    with pytest.raises(NotPlain):
        unpack(tree, body)


def test_depth_is_limited():
    tree = 1
    for _ in range(20):
        tree = {"list": [tree]}
    with pytest.raises(NotPlain):
        unpack(tree, b"")

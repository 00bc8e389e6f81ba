import pytest

from autograder.launch_text import LaunchTextError, evaluate

SIZES = {"n": 1000, "Nq": 37, "batch": 2, "heads": 3}


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("7", (7,)),
        ("n", (1000,)),
        ("cdiv(n, 256)", (4,)),
        ("cdiv(Nq, 8), batch * heads", (5, 6)),
        ("32, 8, 1", (32, 8, 1)),
        ("(n + 255) // 256", (4,)),
        ("n - 1 * 2 % 2", (1000,)),
        ("max(1, n // 2048), min(n, 512)", (1, 512)),
        ("  (n,\n  2) ", (1000, 2)),
    ],
)
def test_arithmetic_on_the_sizes(text, numbers):
    assert evaluate("grid", text, SIZES) == numbers


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("m", "grid: there is no size m; there are n, Nq, batch, heads"),
        ("n / 256", "use cdiv(a, b) or //"),
        ("2 ** 60", "2 ** 60 is not arithmetic on sizes"),
        ("2.5", "2.5 is not arithmetic"),
        ("True", "True is not arithmetic"),
        ("'a' * n", "'a' is not arithmetic"),
        ("__import__('os').system('true')", "is not arithmetic"),
        ("n.bit_length()", "is not arithmetic"),
        ("cdiv", "there is no size cdiv"),
        ("cdiv(n)", "is not arithmetic"),
        ("max(n, key=n)", "is not arithmetic"),
        ("max(*n, n)", "is not arithmetic"),
        ("[n for n in n]", "is not arithmetic"),
        ("(lambda: n)()", "is not arithmetic"),
        ("-n", "is not arithmetic"),
        ("n := 3", "cannot read"),
        ("", "cannot read"),
        ("n; n", "cannot read"),
        ("\0", "cannot read"),
        ("n // 0", "divides by 0"),
        ("(" * 100 + "n" + ")" * 99, "cannot read"),
        ("n" * 201, "longer than 200 characters"),
    ],
)
def test_anything_else_is_refused_in_one_line(text, words):
    with pytest.raises(LaunchTextError) as raised:
        evaluate("grid", text, SIZES)
    assert words in str(raised.value)
    assert str(raised.value).startswith("grid: ")
    assert len(str(raised.value).splitlines()) == 1

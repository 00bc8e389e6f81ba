import numpy as np
import pytest

from autograder.candidate import NotWritten, StudentFault
from autograder.in_process import InProcess
from reference_numpy.machine import Machine


def run(function, x=None):
    machine = Machine(sram_bytes=1024)
    X = machine.hbm("X", np.ones((64, 8), np.float32))
    machine.seal()
    InProcess(function).on_machine(machine, [X], {})
    return machine


def fault(function, *arguments):
    with pytest.raises(StudentFault) as raised:
        if arguments:
            InProcess(function).call(*arguments)
        else:
            run(function)
    assert not raised.value.fatal
    return str(raised.value)


def test_an_exception_names_the_students_own_line_and_text():
    def kernel(machine, X):
        tile = X[0:4]
        return np.concatenate([tile, np.ones((2, 3))])  # raised inside NumPy

    line = kernel.__code__.co_firstlineno + 2
    text = fault(kernel)
    assert text.startswith(f"ValueError in line {line} of test_in_process.py: all the input")
    assert text.endswith("return np.concatenate([tile, np.ones((2, 3))])  # raised inside NumPy")


def test_a_cell_is_called_your_cell():
    names = {}
    exec(compile("def f(x):\n    return x / 0\n", "/tmp/ipykernel_17/123.py", "exec"), names)
    assert fault(names["f"], 1).startswith("ZeroDivisionError in line 2 of your cell: division")


def test_an_overflow_of_sram_is_told_as_the_machine_tells_it():
    def kernel(machine, X):
        a = X[0:20]
        b = X[20:40]
        return a, b, X[40:41]

    text = fault(kernel)
    assert text.startswith("SramOverflow in line")
    assert "1,280 bytes of tiles in 1,024 bytes of SRAM: X[0:20, 0:8], X[20:40, 0:8]" in text


def test_arithmetic_in_hbm_is_told_as_the_machine_tells_it():
    text = fault(lambda machine, X: X @ X)
    assert "InHbm in line" in text
    assert "Load a tile first" in text


@pytest.mark.parametrize("door", ["to_host", "hbm", "empty"])
def test_the_hosts_doors_to_hbm_are_shut_while_a_kernel_runs(door):
    arguments = {"to_host": ("X",), "hbm": ("Z", np.ones(1)), "empty": ("Z", (1,))}[door]
    assert "a kernel cannot" in fault(lambda machine, X: getattr(machine, door)(*arguments))


def test_the_doors_open_again():
    assert run(lambda machine, X: None).to_host("X").shape == (64, 8)


def test_not_implemented_is_not_written():
    def kernel(machine, X):
        raise NotImplementedError

    with pytest.raises(NotWritten):
        run(kernel)


@pytest.mark.parametrize("value", [None, ...])
def test_a_value_that_is_nothing_is_not_written(value):
    with pytest.raises(NotWritten):
        InProcess(value).call()


def test_a_value_is_handed_over():
    assert InProcess(12).call() == 12


def test_the_stop_button_still_works():
    def kernel(machine, X):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(kernel)


def test_exit_and_endless_recursion_are_faults():
    def forever(x):
        return forever(x)

    assert "asked Python to exit" in fault(lambda x: exit(), 1)
    assert "RecursionError in line" in fault(forever, 1)


def test_what_is_returned_must_be_plain():
    assert "returned a value of type object" in fault(lambda x: object(), 1)


def test_a_call_with_the_wrong_arguments():
    assert "TypeError: " in fault(lambda: 0, 1)


def test_arguments_are_copies():
    def spoil(x):
        x[:] = 0

    x = np.ones(3)
    InProcess(spoil).call(x)
    assert x.sum() == 3

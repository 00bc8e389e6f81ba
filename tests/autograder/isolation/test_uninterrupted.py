import signal
import threading

import pytest

from autograder.isolation.uninterrupted import uninterrupted


def test_ctrl_c_waits_until_the_work_is_done():
    done = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        done.append("cleared away")
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with uninterrupted():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_have_nothing_to_hold_back():
    went = []

    def work():
        with uninterrupted():
            went.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert went

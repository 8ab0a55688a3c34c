"""Calls on a second thread: their order, what they raise, and where there is no such thread."""

from __future__ import annotations

import threading
import time

import pytest

from fxframework.kernels import behind
from fxframework.kernels.behind import WORTHWHILE, Behind


@pytest.fixture(params=[True, False], ids=["two cores", "one core"])
def cores(request, monkeypatch):
    """Whether there is a second core."""
    monkeypatch.setattr(behind, "has_cores", lambda: request.param)
    return request.param


def threads():
    """The threads of this program that make calls behind another one."""
    return [each for each in threading.enumerate() if each.name == "fxf behind"]


def test_calls_are_made_in_order_and_done_at_the_end(cores):
    found = []
    with Behind(WORTHWHILE) as other:
        for number in range(100):
            other.do(found.append, number)
    assert found == list(range(100))
    assert not threads()


def test_a_second_core_makes_the_calls_on_another_thread(cores):
    where = []
    with Behind(WORTHWHILE) as other:
        other.do(lambda: where.append(threading.current_thread()))
    assert (where[0] is not threading.current_thread()) == cores


def test_little_work_stays_on_the_thread_of_the_caller(monkeypatch):
    monkeypatch.setattr(behind, "has_cores", lambda: True)
    with Behind(WORTHWHILE - 1) as other:
        other.do(lambda: None)
        assert not threads()


def test_an_exception_comes_to_the_caller_and_drops_later_calls(cores):
    found = []

    def fail():
        raise ValueError("no")

    def several():
        with Behind(WORTHWHILE) as other:
            other.do(found.append, 1)
            other.do(fail)
            for _ in range(10):
                other.do(found.append, 2)

    with pytest.raises(ValueError, match="no"):
        several()
    assert found == [1]
    assert not threads()


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_exception_of_the_last_call_comes_at_the_end(cores, error):
    def fail():
        raise error

    with pytest.raises(error), Behind(WORTHWHILE) as other:
        other.do(fail)
    assert not threads()


def test_an_exception_of_the_caller_waits_for_the_call_that_is_made(cores):
    begun = threading.Event()
    found = []

    def slow():
        begun.set()
        time.sleep(0.05)
        found.append(1)

    def interrupted():
        with Behind(WORTHWHILE) as other:
            other.do(slow)
            begun.wait()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert found == [1]
    assert not threads()


def test_the_caller_waits_where_many_calls_are_pending(monkeypatch):
    monkeypatch.setattr(behind, "has_cores", lambda: True)
    go = threading.Event()
    made = []
    threading.Timer(0.1, go.set).start()
    with Behind(WORTHWHILE) as other:
        other.do(go.wait)
        for number in range(10):
            other.do(made.append, number)
            assert go.is_set() or number < behind.PENDING
    assert made == list(range(10))

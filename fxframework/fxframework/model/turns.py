"""Turns: threads that share a capture read it one after the other."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any, TypeVar

__all__ = ["held", "in_turns", "public_in_turns"]

T = TypeVar("T")
END: Any = object()
"""What ``next`` returns at the end of an iterator, which may yield None."""


def in_turns(function: Callable[..., T]) -> Callable[..., T]:
    """Return a method of a capture that holds the capture's lock (``strings.lock``).

    The iterator that it returns holds the lock while it makes an item, and not between two items.
    So several may be used by turns, by one thread or by several.
    """

    @functools.wraps(function)
    def in_turn(self: Any, *args: Any, **options: Any) -> Any:
        strings = vars(self).get("strings")
        if strings is None:  # before ``Capture.__init__``: nobody shares it yet
            return function(self, *args, **options)
        with strings.lock:
            result: Any = function(self, *args, **options)
        if hasattr(result, "__next__"):  # it has made nothing yet: each item takes a turn
            return _by_turns(result, strings.lock)
        return result

    in_turn.takes_turns = True  # type: ignore[attr-defined]
    return in_turn


@contextlib.contextmanager
def held(captures: Iterable[Any]) -> Iterator[None]:
    """Hold the locks of captures, in an order of their own: nobody waits for one who waits."""
    locks = {id(capture.strings.lock): capture.strings.lock for capture in captures}
    with contextlib.ExitStack() as stack:
        for _, lock in sorted(locks.items()):
            stack.enter_context(lock)
        yield


def _by_turns(items: Iterator[T], lock: Any) -> Iterator[T]:
    """Yield the items, each of which is made under the lock."""
    try:
        while True:
            with lock:
                item = next(items, END)
            if item is END:
                return
            yield item
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            with lock:
                close()


def public_in_turns(cls: type) -> None:
    """Let all public methods and properties that a class of captures defines hold its lock."""
    for name, value in list(vars(cls).items()):
        if name.startswith("_") or hasattr(value, "takes_turns"):
            continue
        if isinstance(value, FunctionType):
            setattr(cls, name, in_turns(value))
        elif isinstance(value, property) and value.fget is not None:
            setattr(cls, name, property(in_turns(value.fget), value.fset, value.fdel))

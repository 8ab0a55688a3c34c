"""Links: values that refer to a tree in another VMO."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.format import BlockType
from fx_inspect.write.state import State, Text
from fx_inspect.write.values import Container, Value
from fxframework.errors import refusal
from fxframework.model.target import Memory

__all__ = ["Lazy", "LinkedTree"]


class LinkedTree(Protocol):
    """A tree that a link refers to, such as an ``Inspector``."""

    memory: Memory

    def copy(self) -> bytes | None:
        """Return the VMO; None while a transaction is open."""


class Lazy(Value):
    """A link to a separate tree, which ``Inspector.trees`` requests when it is read."""

    __slots__ = ("_content", "_new", "callback")

    def __init__(
        self, state: State, parent: Container, callback: Callable[[], LinkedTree], content: str
    ) -> None:
        super().__init__(state, parent)
        self.callback = callback
        """Returns the tree."""
        self._content: Text | None = None
        self._new = (state.named(content), content)

    @property
    def content(self) -> str:
        """The content of the link; the empty string once it is deleted."""
        return "" if self._content is None else self._content.text

    def _make(self, name: str, disposition: int) -> None:
        self._enter(name, BlockType.LINK_VALUE, wire.LINK_DISPOSITION.put(disposition))

    def _entered(self) -> None:
        state = self._state
        taken = state.take_name(*self._new)
        if taken is None:
            self._remove()
            return
        if taken.index > wire.MAX_LINK_INDEX:
            state.release(taken)
            self._remove()
            raise refusal(
                rules.INDEX_OUT_OF_RANGE,
                f"a link cannot refer to block {taken.index}: at most {wire.MAX_LINK_INDEX}",
                "make links before the VMO grows over 16 MiB",
            )
        self._content = taken
        state.store(self._at + 8, state.load(self._at + 8) | taken.index)
        state.links[taken.text] = self.callback

    def _deleted(self) -> None:
        if self._content is not None:
            self._remove()
            content, self._content = self._content, None
            self._state.links.pop(content.text, None)
            self._state.release(content)

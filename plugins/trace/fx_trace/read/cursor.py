"""A record being read: its fields, and the tables that it refers to."""

from __future__ import annotations

import itertools
from typing import Any

import attrs

from fx_trace import rules
from fx_trace.format import DEFAULT_PROVIDER
from fx_trace.indexed import STRINGS, THREADS, Koids
from fxframework.errors import Rule
from fxframework.io.words import U64_MAX, FieldView
from fxframework.model.clock import Clock
from fxframework.model.diagnostics import Found
from fxframework.wire.cursor import SIZE, Cursor
from fxframework.wire.rules import NOT_UTF8
from fxframework.wire.state import State

NOTHING: dict[tuple[Any, int], Any] = {}
"""What a provider has that registered nothing: a file may name a great many of those."""
_NANOSECONDS = Clock()


@attrs.define
class Provider:
    """One provider's tables (Provider section metadata)."""

    registered: dict[tuple[Any, int], Any] = attrs.field(default=NOTHING)
    """Its strings and threads, by table and index."""
    ticks_per_second: int | None = None
    clock: Clock = _NANOSECONDS
    introduced: bool = False
    """Whether provider info named it, not only a section."""
    rate_at: int = -1
    """The offset of the record that gave its rate; -1: none did."""
    default_rate_at: int = -1
    """That of the default provider, when it was first heard of."""
    missed_rate: bool = False
    """Whether it had none when a record told a time."""
    name: str = ""
    """What it was introduced as last."""
    times_full: int = 0
    """How often it reported that its buffer was full."""
    scope: int = 0
    """What tells its tables from others, and from those that it had before."""


class Tables(State):
    """The providers of a file up to some record, and which of them is speaking."""

    def __init__(self) -> None:
        super().__init__()
        self.default = Provider()
        self.current = self.default
        self.providers = {DEFAULT_PROVIDER: self.default}
        self.base_wall_ns: int | None = None
        """The first time of day that a record gave, of those with a rate."""
        self._scopes = itertools.count(1)

    def provider(self, number: int) -> Provider:
        """A provider, entered where it is new: with the clock that provider 0 has by then."""
        provider = self.providers.get(number)
        if provider is None:
            default = self.default
            provider = Provider(
                clock=default.clock, default_rate_at=default.rate_at, scope=next(self._scopes)
            )
            self.providers[number] = provider
        return provider

    def introduce(self, number: int) -> bool:
        """Go on with a provider, whose tables are empty; return whether it was introduced."""
        provider = self.provider(number)
        self.current = provider
        was_introduced = provider.introduced
        provider.introduced = True
        if was_introduced:
            provider.registered = NOTHING
            provider.scope = next(self._scopes)
        return was_introduced

    def register(self, table: Any, index: int, value: Any) -> None:
        """Register a string or a thread of the speaker."""
        if self.current.registered is NOTHING:
            self.current.registered = {}
        self.current.registered[table, index] = value

    def look_up(self, table: Any, index: int) -> tuple[Any, bool]:
        """Return what is registered at an index, and whether only by the default provider.

        None if nothing is.
        """
        value = self.current.registered.get((table, index))
        if value is not None:
            return value, False
        return self.default.registered.get((table, index)), True

    def text(self, table: Any, index: int) -> str | None:
        """Return the string that the speaker registered at an index."""
        value, is_lent = self.look_up(table, index)
        return None if is_lent else value


_ONCE = rules.RESERVED_BITS, rules.PADDING_NOT_ZERO
"""Rules that are reported once per record, behind all others."""
_ONCE_NUMBERS = frozenset(map(int, _ONCE))


class TraceCursor(Cursor):
    """Reads the fields of the record in bytes ``at`` to ``end``."""

    state: Tables

    def __init__(
        self,
        data: memoryview,
        at: int,
        end: int,
        tables: Tables,
        views: list[FieldView] | None = None,
    ) -> None:
        super().__init__(data, at, end, tables, views)
        self.known[SIZE] = end - at

    def find(self, rule: Rule, value: Any = None) -> None:
        """Note a finding at the record, or at the argument being read."""
        self.notes.append((rule, self.start, value))

    def found(self) -> list[Found]:
        """Return the findings."""
        if not self.notes:
            return []
        once: dict[int, Found] = {}
        findings = []
        for number, offset, value in self.notes:
            rule = rules.RULES.numbered(number)
            if number in _ONCE_NUMBERS:
                once.setdefault(rule, Found(rule, offset))
                continue
            if isinstance(value, int):
                value &= U64_MAX  # numbers without a sign, as they are in the file
            findings.append(Found(rule, offset, value))
        return [*findings, *(once[rule] for rule in _ONCE if rule in once)]

    def note(self, number: int, value: int, offset: int | None = None, field: Any = None) -> None:
        """Report a finding; of a text that is not UTF-8 with its bytes."""
        if number == NOT_UTF8:
            self.find(field.rules[NOT_UTF8], self.data[value : self.at].tobytes())
        else:
            super().note(number, value, offset, field)

    def text(self, table: Any, index: int, field: Any) -> str:  # noqa: ARG002 (one table)
        """Return the string at an index, or what stands for one that is not there."""
        return self.registered(STRINGS, index, rules.STRING_NOT_REGISTERED)  # type: ignore[no-any-return]

    def thread(self, index: int) -> Koids:
        """Return the thread at an index, or what stands for one that is not there."""
        return self.registered(THREADS, index, rules.THREAD_NOT_REGISTERED)  # type: ignore[no-any-return]

    def registered(self, table: Any, index: int, rule: Rule) -> Any:
        """Return what is registered at an index, or what stands for it; report what is wrong."""
        value, is_lent = self.state.look_up(table, index)
        if value is None:
            self.find(rule, index)
            return table.unknown(index)
        if is_lent:
            self.find(rules.OF_DEFAULT_PROVIDER, index)
        return value

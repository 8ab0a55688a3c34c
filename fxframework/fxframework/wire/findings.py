"""Findings of many records: numbers of rules with places, put in order block by block, counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.arrays import I64

RULES = 400
"""Numbers of rules of reading are below it."""
FIELDS = 4
"""Numbers of a finding: rule, offset, record, value."""


@attrs.define(eq=False, kw_only=True)
class Noted:
    """Findings by one rule, of one field of many records. Arrays are int64 of the same shape."""

    number: int
    own: Any
    """The records of the class: a ``fxframework.wire.many.ClassRows``."""
    rows: I64
    """The rows of ``own``."""
    offsets: I64
    values: I64
    top: int
    """The number of the field of the record."""
    places: I64
    """How far each record had been read."""
    items: I64
    """The number of the part within its list, or -1."""
    step: int
    """How many fields had been read."""


def in_order(notes: list[Noted]) -> I64:
    """Return the findings of sound records in the order of records, and of fields in them.

    The result is int64 of shape (findings, 4): rule, offset, row of the run, value.
    """
    findings: list[I64] = []
    keys: list[I64] = []
    for note in notes:
        index = np.flatnonzero(note.own.sound[note.rows])
        if not index.size:
            continue
        ordinals = note.own.ordinals[note.rows[index]]
        rule = np.full(index.size, note.number)
        top = np.full(index.size, note.top)
        step = np.full(index.size, note.step)
        findings.append(np.stack([rule, note.offsets[index], ordinals, note.values[index]], 1))
        keys.append(np.stack([step, note.items[index], note.places[index], top, ordinals], 1))
    if not findings:
        return np.zeros((0, FIELDS), np.int64)
    # The last key is the first to be compared: by record; by its field, so that what is found in a
    # list stays there; by how far the record was read; by item; and by the order of reading.
    # Findings of one field keep the order they came in.
    order = np.lexsort(np.concatenate(keys).T)
    return np.concatenate(findings)[order]


def findings_of(rule: Any, offset: Any, record: Any, value: Any, count: int) -> I64:
    """Return findings, int64 of shape (count, 4): rule, offset, number of the record, value.

    Each of these is a column, or the same of all findings.
    """
    findings = np.empty((count, FIELDS), np.int64)
    for field, numbers in enumerate((rule, offset, record, value)):
        findings[:, field] = numbers
    return findings


class FoundAt(NamedTuple):
    """Findings by one rule about events of a batch. Arrays have the shape (findings,)."""

    rule: int
    events: I64
    """Places of the events in the batch, ascending."""
    offsets: I64
    values: NDArray[Any] | int = 0


class Findings:
    """The findings of a pass over a file: the first ones of each rule, and counts of all.

    ``limit`` is the most to list of each rule (0: all); numbers of rules are below ``rules``.
    """

    def __init__(self, limit: int, rules: int = RULES) -> None:
        self.limit = limit or 1 << 62
        self.totals = np.zeros(rules, np.int64)
        self.cut_off = np.zeros(rules, np.int64)
        """Findings that ``left_to_list`` has left out of those to be added next."""
        self.listed: list[I64] = []

    def add(self, rows: I64) -> None:
        """Add findings in their order, int64 of shape (findings, 4)."""
        counts = np.bincount(rows[:, 0], minlength=self.totals.size)
        is_over = self.totals + counts > self.limit
        if (is_over & (counts > 0)).any():
            rows = self._within(rows, np.flatnonzero(counts))
        if len(rows):
            self.listed.append(rows)
        self.totals += counts + self.cut_off
        self.cut_off[:] = 0

    def add_found(self, found: Iterable[FoundAt]) -> None:
        """Add findings of a batch, at most one ``FoundAt`` of a rule, in the order of its events.

        Those about the same event are in the order of ``found``.
        """
        rows: list[I64] = []
        events: list[I64] = []
        for rule, places, offsets, values in found:
            # Of millions only the first ones are listed: the others are not put together.
            listed = min(places.size, self.left_of(rule))
            listed_values = values if isinstance(values, int) else values[:listed]
            rows.append(findings_of(rule, offsets[:listed], -1, listed_values, listed))
            events.append(places[:listed])
            self.totals[rule] += places.size
        if rows:
            order = np.argsort(np.concatenate(events), kind="stable")
            self.listed.append(np.concatenate(rows)[order])

    def left_to_list(self, notes: list[Noted]) -> list[Noted]:
        """Return findings to be added; count those of rules of which no more are listed."""
        to_list: list[Noted] = []
        for note in notes:
            if self.totals[note.number] < self.limit:
                to_list.append(self._first_of(note))
            else:
                self.totals[note.number] += np.count_nonzero(note.own.sound[note.rows])
        return to_list

    def _first_of(self, note: Noted) -> Noted:
        """Return as many findings by a rule as may be listed, the first ones; count the others."""
        left = self.left_of(note.number)
        if note.rows.size <= left or not (note.rows[1:] > note.rows[:-1]).all():
            return note  # those of one record are not in order yet
        sound = np.flatnonzero(note.own.sound[note.rows])
        self.cut_off[note.number] += max(0, sound.size - left)
        first = sound[:left]
        columns = ("rows", "offsets", "values", "places", "items")
        return attrs.evolve(note, **{name: getattr(note, name)[first] for name in columns})

    def left_of(self, number: int) -> int:
        """Return how many findings by a rule are still listed."""
        return max(0, self.limit - int(self.totals[number]))

    def count(self, number: int, count: int) -> None:
        """Count findings by a rule that are not listed."""
        self.totals[number] += count

    def _within(self, rows: I64, numbers: I64) -> I64:
        """Return the findings, by rules of some numbers, that are among the first ones."""
        is_listed = np.zeros(len(rows), bool)
        for number in numbers.tolist():
            rows_of_rule = np.flatnonzero(rows[:, 0] == number)
            is_listed[rows_of_rule[: self.left_of(number)]] = True
        return rows[is_listed]

    @property
    def rows(self) -> I64:
        """The listed findings, of shape (findings, 4)."""
        return np.concatenate([np.zeros((0, FIELDS), np.int64), *self.listed])

    def taken(self) -> I64:
        """Return the findings that were listed since the last call, of shape (findings, 4)."""
        listed = self.rows
        self.listed = []
        return listed

    def beyond_limit(self) -> list[tuple[int, int]]:
        """Return the rules with more findings than are listed, and how many more."""
        not_listed = self.totals - self.limit
        numbers = np.flatnonzero(not_listed > 0)
        return list(zip(numbers.tolist(), not_listed[numbers].tolist(), strict=True))

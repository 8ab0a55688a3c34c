"""A finding is reported once, in whatever order records and tables of a capture are read."""

from __future__ import annotations

import itertools
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache

import pytest

from fxframework.host import default_host
from fxframework.model.capture import Capture
from fxframework.model.diagnostics import Diagnostics

from ..samples import one_of_each, samples

LONG = 2_000
"""Bytes of a capture that is read in fewer orders."""
APART = (4, 12)
"""Of the orders every such one is tried, for short captures and for long ones, each beginning with
another one, so that all are tried with several captures."""
Found = Counter[tuple[str, int | None, int | None, str]]


def drain(items: Iterable[object]) -> None:
    deque(items, maxlen=0)


def read_tables(capture: Capture) -> None:
    for name in capture.tables:
        capture.table(name)


def read_batches(capture: Capture) -> None:
    for name in capture.tables:
        drain(capture.batches(name, 100))


STEPS: dict[str, Callable[[Capture], object]] = {
    "records": lambda capture: drain(capture.records()),
    "json": lambda capture: drain(capture.records_json()),
    "tables": read_tables,
    "batches": read_batches,
    "counts": lambda capture: capture.record_counts(),
    "trim": lambda capture: capture.trim(),
}
BEGUN: dict[str, Callable[[Capture], Iterator[object]]] = {
    "nothing": lambda _: iter(()),
    "records": lambda capture: iter(capture.records()),
    "json": lambda capture: iter(capture.records_json()),
}


def found(diagnostics: Diagnostics) -> Found:
    return Counter((one.code, one.offset, one.record, one.message) for one in diagnostics)


@cache
def damaged() -> dict[str, tuple[str, bytes]]:
    """Captures with findings, one of each format: cut short, and with some bytes changed."""
    made: dict[str, tuple[str, bytes]] = {}
    for name in one_of_each():
        format, data = samples()[name]
        changed = bytearray(data)
        rng = random.Random(5)
        for at in rng.sample(range(len(data) // 8, len(data)), min(len(data) // 2, 12)):
            changed[at] = rng.randrange(256)
        with default_host().open(data, format=format) as capture:
            made[f"{name}, cut"] = capture.format, data[: len(data) * 2 // 3]
            made[f"{name}, changed"] = capture.format, bytes(changed)
    return made


def opened(case: str) -> Capture:
    format, data = damaged()[case]
    return default_host().open(data, format=format)


def test_every_format_has_findings() -> None:
    formats = set()
    for case, (format, _) in damaged().items():
        with opened(case) as capture:
            capture.scan()
            if not capture.rules.keys().isdisjoint(capture.diagnostics.counts):
                formats.add(format)
    assert formats >= default_host().readers.keys() - {"records"}


@pytest.mark.parametrize("begun", BEGUN)
def test_findings_are_reported_once(begun: str) -> None:
    """Takes seconds: captures of every format, damaged in two ways, are read in many orders."""
    for number, case in enumerate(damaged()):
        check(case, begun, number)


def check(case: str, begun: str, number: int) -> None:
    """Read a capture in some orders, of which the first follows from its number."""
    with opened(case) as capture:
        capture.scan()
        whole, counts = found(capture.diagnostics), capture.diagnostics.counts
    with opened(case) as capture:
        drain(capture.records())
        of_records = capture.diagnostics.counts
    orders: Iterable[tuple[str, ...]] = itertools.permutations(STEPS, 2)
    if begun == "nothing":
        orders = ((first, "trim", last) for first, last in orders)
    apart = APART[len(damaged()[case][1]) > LONG]
    first = (5 * (number // 2) + number % 2) % apart  # every one with both kinds of damage
    for order in itertools.islice(orders, first, None, apart):
        with opened(case) as capture:
            under_way = BEGUN[begun](capture)
            next(under_way, None)
            for step in order:
                STEPS[step](capture)
            drain(under_way)
            if {"tables", "batches"} & {*order}:
                assert found(capture.diagnostics) == whole, order
                assert capture.diagnostics.counts == counts, order
            elif "counts" not in order and "json" not in (begun, *order):
                assert capture.diagnostics.counts == of_records, order
            else:
                for code, count in capture.diagnostics.counts.items():
                    assert count <= max(counts.get(code, 0), of_records.get(code, 0)), order

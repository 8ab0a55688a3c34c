"""Record JSON becomes the same objects, or is refused with the same words, by generated code."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.specimen import BLOCKS, ITEMS, NOTES
from tests.wire.support import opened
from tests.wire.test_agreement import SAMPLES
from tests.wire.test_sources import things

import fx_log.read.records as logs
import fx_trace.records as traces
import fx_xray.write.encoder as xray
from fxframework.errors import WriteRefusedError
from fxframework.host import default_host
from fxframework.testing.contracts.checks import through_json
from fxframework.testing.contracts.writer import VALUES
from fxframework.wire.format import Format
from fxframework.wire.records import Layout

Json = dict[str, Any]
ADDED = (
    "refs", "offset", "raw", "text_bytes_hex", "name_bytes_hex", "value_bits", "value_bytes_hex",
    "tags_bytes_hex", "real_bits", "type", "extra", "colour", "payload_hexx",
)  # fmt: skip
LEGACY = {"record": "legacy_packet", "pid": 1, "tid": 2, "timestamp": -3, "severity": 48,
          "raw_severity": 48, "dropped_logs": 0, "tags": ["a", "b"], "message": "text"}  # fmt: skip
MORE: tuple[Any, ...] = (
    "NaN", "Infinity", "ff", "000", 1.5, -0.0, 2**63, [1], ["a", "é"], "\udcff", {"name": 1},
    {"value": 3}, "blue", "uint64", "string",
)  # fmt: skip


def of_format(format: Format, data: bytes) -> list[Json]:
    return [record.to_json() for record in opened(format, data).records()]


def of_plugin(name: str) -> list[Json]:
    """A record of each kind of a sample, and some more."""
    host = default_host()
    sample = host.readers[name].sample
    assert sample is not None
    kinds: dict[str, list[Json]] = {}
    with host.open(sample(20_000), format=name) as capture:
        for record in capture.records():
            shown = record.to_json()
            some = kinds.setdefault(shown["record"], [])
            some += [shown] if len(some) < 3 else []
    return [shown for some in kinds.values() for shown in some]


def cases() -> Iterator[tuple[str, Callable[[Any], Any], list[Json]]]:
    yield "blocks", BLOCKS.from_json, of_format(BLOCKS, SAMPLES["blocks"] + SAMPLES["blocks-odd"])
    yield "items", ITEMS.from_json, of_format(ITEMS, SAMPLES["items"])
    yield "notes", NOTES.from_json, of_format(NOTES, things())
    yield "log", logs.from_json, of_plugin("log")
    yield "log-legacy", logs.from_json, [LEGACY]
    yield "trace", traces.from_json, of_plugin("trace")
    yield "xray", xray.from_json, of_plugin("xray")


CASES = {name: (read, [through_json(each) for each in shown]) for name, read, shown in cases()}


def outcome(read: Callable[[Any], Any], given: Json) -> tuple[Any, ...]:
    try:
        made = read(given)
    except WriteRefusedError as error:
        return error.code, error.message, error.remedy
    return type(made), {name: repr(value) for name, value in vars(made).items()}


def field_by_field(self: Layout) -> Any:
    raise ValueError


def check_same(read: Callable[[Any], Any], given: Json) -> None:
    before = copy.deepcopy(given)
    taken = outcome(read, given)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Layout, "taken", property(field_by_field))
        assert taken == outcome(read, given)
    assert repr(given) == repr(before)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in pairs:
        yield (*path, key)
        if isinstance(each, dict | list):
            yield from places(each, (*path, key))


@pytest.mark.parametrize("name", CASES)
def test_usual_json_is_taken_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read, records = CASES[name]
    for shown in records:
        check_same(read, shown)
    monkeypatch.setattr(Layout, "parse_each", None)
    usual = [shown for shown in records if "raw" not in shown and shown["record"] != "header"]
    plain = [each for each in usual if "bytes_hex" not in str(each) and "NaN" not in str(each)]
    for shown in plain:
        if "'lost'" not in str(shown) and "'value': None" not in str(shown):
            read(shown)


@given(st.data())
@pytest.mark.parametrize("name", CASES)
def test_edited_json_has_the_same_outcome(name: str, data: st.DataObject) -> None:
    read, records = CASES[name]
    shown = copy.deepcopy(data.draw(st.sampled_from(records)))
    for _ in range(data.draw(st.integers(1, 2))):
        *path, last = data.draw(st.sampled_from(list(places(shown))))
        holder = shown
        for key in path:
            holder = holder[key]
        how = data.draw(st.sampled_from(["edit", "edit", "remove", "add"]))
        value = data.draw(st.sampled_from([*VALUES, *MORE]))
        if how == "edit":
            holder[last] = copy.deepcopy(value)
        elif how == "remove":
            del holder[last]
        elif isinstance(holder, dict):
            holder[data.draw(st.sampled_from(ADDED))] = copy.deepcopy(value)
    check_same(read, shown)

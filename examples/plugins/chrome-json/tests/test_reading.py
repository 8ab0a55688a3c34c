"""What events become: exact times, arguments, ids, nesting, and findings for what is wrong."""

from __future__ import annotations

import itertools
import json
import math
import random
import time
from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pytest

from fx_chrome_json import plugin
from fx_chrome_json.read import match, reader, scan
from fx_chrome_json.sample import sample
from fxframework.host import Host
from fxframework.model.capture import Capture
from fxframework.model.schema import ARG_TYPES
from fxframework.testing.contracts.checks import rows_of

from .samples import ARRAY, EVENTS, OBJECT, ODD, SYSTEM, event


def opened(data: Any, **options: Any) -> Capture:
    host = Host(discover=False)
    host.register(plugin, name="chrome-json")
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return host.open(raw, format="chrome-json", options=options)


def rows(data: Any, table: str, *columns: str) -> list[tuple[Any, ...]]:
    with opened(data) as capture:
        return [tuple(getattr(row, name) for name in columns) for row in capture.table(table)]


# --- Times ---------------------------------------------------------------------------------------

TIMES = [
    "0", "1", "-1", "0.001", "1.0004", "1.0005", "1.0015", "1.0025", "2.9999", "1e3", "1.5E-3",
    "8.7", "0.0004999999999999", "1.0004999999999999", "12562555450.5767", "4398046511104.123",
    "8796093022207.999", "9007199254740.993", "1700000000000000.123", "81093837702.99999",
    "9223372036854775.807", "-9223372036854775.808", "1.23456789012345678901234567890",
]  # fmt: skip


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("text", TIMES)
def test_times_are_the_nearest_nanosecond_of_the_text(text: str, quoted: bool) -> None:
    expected = int((Decimal(text) * 1000).to_integral_value(ROUND_HALF_UP))
    shown = f'"{text}"' if quoted else text
    raw = f'[{{"ph":"i","ts":{shown},"pid":1,"tid":1}},{{"ph":"i","ts":7.5,"pid":1,"tid":1}}]'
    assert rows(raw.encode(), "instants", "ts") == [(expected,), (7500,)]


def test_random_times_and_lengths_are_exact() -> None:
    chance = random.Random(5)
    texts = [
        f"{chance.randrange(10 ** chance.randrange(1, 13))}.{chance.randrange(10**places):0{places}}"  # noqa: E501
        for places in (1, 2, 3, 4, 6, 9)
        for _ in range(200)
    ]
    raw = ",".join(f'{{"ph":"X","ts":{a},"dur":{b}}}' for a, b in itertools.pairwise(texts))
    exact = [int((Decimal(x) * 1000).to_integral_value(ROUND_HALF_UP)) for x in texts]
    assert rows(f"[{raw}]".encode(), "slices", "ts", "dur") == list(itertools.pairwise(exact))


@pytest.mark.parametrize(
    "text", ["null", '"soon"', "[]", "{}", "1e400", '"1e999999999"', "1e300", "true", '""', "NaN"]
)
def test_what_is_no_time_is_a_finding(text: str) -> None:
    raw = f'[{{"ph":"i","ts":{text}}},{{"ph":"i","ts":1}}]'.encode()
    with opened(raw) as capture:
        assert capture.table("instants").array("ts").tolist() == [1000]
        found = {each.code: each.offset for each in capture.diagnostics}
        assert found["CHJ0113"] == 1


# --- Arguments -----------------------------------------------------------------------------------

ARGS = {
    "int": -(1 << 63), "uint": (1 << 64) - 1, "big": 1 << 64, "real": 0.1, "yes": True,
    "none": None, "text": 'é "\\ \n\0', "list": [1, [], {"a": {"b": "c"}}], "empty": {}, "": 1,
    "#": "x" * 100,
}  # fmt: skip


def test_arguments_of_every_type() -> None:
    found = {
        name: (ARG_TYPES[kind], *values)
        for name, kind, *values in rows(
            [event("X", 1, dur=1, args=ARGS)], "args", "name", "type", "int", "uint", "float", "str"
        )
    }
    assert found["int"][:2] == ("int64", -(1 << 63))
    assert found["uint"][:3] == ("uint64", -1, (1 << 64) - 1)
    assert found["real"] == ("double", 0, 0, 0.1, None)
    assert found["yes"][:2] == ("bool", 1)
    assert found["none"][0] == "null"
    assert found["text"][-1] == ARGS["text"]
    assert found["list[0]"][:2] == ("int64", 1)
    assert found["list[1]"][-1] == "[]"
    assert found["list[2].a.b"][-1] == "c"
    assert found["empty"][-1] == "{}"
    assert found[""][:2] == ("int64", 1)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'"\\ud800"', b"\xed\xa0\x80"),
        (b'"a\xffb"', b"a\xffb"),
        (b'"\\u0000"', b"\0"),
        ('"é"'.encode(), "é".encode()),
    ],
)
def test_strings_keep_their_bytes(raw: bytes, expected: bytes) -> None:
    with opened(b'[{"ph":"i","ts":1,"args":{"a":%b}}]' % raw) as capture:
        args = capture.table("args")
        assert args.pool.bytes_of(int(args.array("str")[0])) == expected


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_not_json(token: str) -> None:
    with opened(f'[{{"ph":"i","ts":1,"args":{{"a":{token}}}}}]'.encode()) as capture:
        value = capture.table("args").array("float")[0]
        assert repr(float(value)) == repr(float(token))
        assert math.isnan(value) or math.isinf(value)
        assert [each.code for each in capture.diagnostics] == ["CHJ0105"]


# --- Phases --------------------------------------------------------------------------------------


def test_every_phase_has_its_table() -> None:
    with opened(OBJECT) as capture:
        counts = {name: len(capture.table(name)) for name in capture.schemas}
        assert counts == {
            "processes": 1, "threads": 2, "slices": 4, "instants": 2, "counters": 2, "flows": 2,
            "sched": 0, "args": 11, "chrome_events": 3, "chrome_frames": 1, "chrome_samples": 0,
        }  # fmt: skip
        assert [row.name for row in capture.table("processes")] == ["shop"]
        assert [row.chrome_labels for row in capture.table("processes")] == ["blue"]
        assert capture.table("threads").texts("chrome_sort_index") == ["-3", None]
        slices = [(row.name, row.dur, row.depth, row.parent) for row in capture.table("slices")]
        assert slices == [("order", 90_500, 0, -1), ("charge", 10_499, 1, 0),
                          ("request", 14_000, 0, -1), ("ship", 1_000, 0, -1)]  # fmt: skip
        flows = [(row.phase, row.slice) for row in capture.table("flows")]
        assert flows == [(0, 1), (2, 3)], "the end binds to the slice that begins next"
        texts = [capture.source.read(*row.text) for row in capture.table("chrome_events")]
        assert [json.loads(text)["ph"] for text in texts] == ["N", "O", "D"]
        assert capture.summary().facts["document"]["displayTimeUnit"] == "ns"


def test_ids_of_other_categories_and_processes_are_others() -> None:
    given = [
        {"id": 1, "cat": "a"}, {"id": "0x1", "cat": "a"}, {"id": 1, "cat": "b"}, {"id": "x"},
        {"id2": {"global": 1}, "cat": "a"}, {"id2": {"local": 1}, "cat": "a"},
        {"id": 1, "scope": "s"},
    ]  # fmt: skip
    ids = [id for (id,) in rows([event("b", 1, name="n", **g) for g in given], "slices", "id")]
    assert ids[0] == ids[1] == ids[4] == 1
    assert len({*ids[2:4], *ids[5:], ids[0]}) == 5


def test_texts_as_numbers_of_processes_and_threads() -> None:
    given = [(1, 2), ("1", "2"), ("0x10", "gpu"), ("main", 5), (None, 7), (8, None), (-1, 2.0)]
    data = [
        {
            key: value
            for key, value in {"ph": "i", "ts": 1, "pid": pid, "tid": tid}.items()
            if value is not None
        }
        for pid, tid in given
    ]
    threads = rows(data, "threads", "pid", "tid", "name")
    assert threads[0] == (1, 2, None)
    assert threads[1][0] == 16
    assert threads[1][2] == "gpu"
    assert threads[2][1:] == (5, None)
    assert threads[3:] == [(0, 7, None), (8, 8, None), ((1 << 64) - 1, 2, None)]
    assert "main" in {name for (name,) in rows(data, "processes", "name")}


def test_frames_and_samples() -> None:
    frames = {"1": {"name": "main", "category": "app"}, "2": {"name": "f", "parent": "1"}, "3": 7}
    samples = [
        {"cpu": 3, "tid": 2, "ts": 1.5, "name": "cycles", "sf": 2, "weight": 0.5},
        {"ts": "2", "pid": 1, "tid": 9, "weight": 10**400},
        {"ts": None}, 5,
    ]  # fmt: skip
    # Before the events, of which the first sample is of a known thread.
    data = {"samples": samples, "stackFrames": frames, "traceEvents": [event("i", 9)]}
    assert rows(data, "chrome_frames", "id", "parent", "name", "category") == [
        ("1", None, "main", "app"), ("2", "1", "f", None),
    ]  # fmt: skip
    columns = ("ts", "cpu", "thread", "name", "weight", "frame")
    assert rows(data, "chrome_samples", *columns) == [
        (1500, 3, 0, "cycles", 0.5, "2"), (2000, 0, 1, None, 1.0, None),
    ]  # fmt: skip
    assert rows(data, "threads", "pid", "tid") == [(1, 2), (1, 9)]
    with opened(data) as capture:
        assert (capture.summary().start_ns, capture.summary().end_ns) == (1500, 9000)
        assert capture.diagnostics.counts == {"CHJ0107": 3}
        assert capture.row_counts()["chrome_samples"] == 2
    for wrong in ({"samples": {}}, {"stackFrames": []}):
        with opened({"traceEvents": [], **wrong}) as capture:
            capture.scan()
            assert capture.diagnostics.counts == {"CHJ0107": 1}


def test_context_switches_of_both_forms() -> None:
    columns = ("ts", "cpu", "kind", "prev_priority", "next_priority")
    assert rows(SYSTEM, "sched", *columns) == [(1, 1, 1, -1, 3), (2000, 0, 2, -1, -1)]
    line = (
        "a b-2 (    1) [003] d... 0.000000123: sched_switch: prev_comm=a b prev_pid=2 prev_prio=7 "
        "prev_state=S ==> next_comm=\\u0041 next_pid=3 next_prio=9\\n"
        "<...>-0 (-----) [001] .... 1.000000: sched_waking: comm=c pid=4 prio=5 target_cpu=001\\n"
    )
    raw = f'{{"traceEvents":[],"systemTraceEvents":"# tracer: nop\\n{line}"}}'.encode()
    assert rows(raw, "sched", *columns) == [(123, 3, 1, 7, 9), (1_000_000_000, 1, 2, -1, 5)]
    assert {name for (name,) in rows(raw, "threads", "name")} == {"a b", "A", "c"}
    # Where a file has both forms, as fxframework writes them, switches count once.
    both = SYSTEM[:-2] + f',"systemTraceEvents":"{line}"}}'.encode()
    assert len(rows(both, "sched", "ts")) == 2


# --- What is wrong -------------------------------------------------------------------------------


def test_findings_say_where() -> None:
    with opened(ODD) as capture:
        capture.scan()
        found = {(each.code, each.offset) for each in capture.diagnostics}
    at = {text: ODD.index(text) for text in (b"17", b'{"ph":"E"', b'{"ph":"?"', b'{"ph":"B"',
                                             b'{"ph":"i","ts":3', b'{"ph":"C"')}  # fmt: skip
    assert {("CHJ0103", at[b"17"]), ("CHJ0201", at[b'{"ph":"E"']), ("CHJ0112", at[b'{"ph":"?"']),
            ("CHJ0202", at[b'{"ph":"B"']), ("CHJ0106", at[b'{"ph":"i","ts":3']),
            ("CHJ0107", at[b'{"ph":"C"']), ("CHJ0104", 1), ("CHJ0105", 1)} <= found  # fmt: skip


@pytest.mark.parametrize("form", [ARRAY, OBJECT, SYSTEM, ODD])
def test_truncated_at_every_byte(form: bytes) -> None:
    with opened(form) as capture:
        whole = [record.to_json() for record in capture.records()]
    for length in range(0, len(form), 7):
        with opened(form[:length]) as capture:
            kept = [r for r in whole if r["offset"] + r["nbytes"] <= length]
            assert [record.to_json() for record in capture.records()][: len(kept)] == kept
            capture.scan()
            assert all(each.offset is None or each.offset <= length for each in capture.diagnostics)


@pytest.mark.parametrize(
    "piece",
    [b"[", b"{", b'{"a":', b'"', b"\\", b'"\\', b'},{"', b'{[ },{"', b"}", b"]", b",", b" ", b"1",
     b'{"ph":"B"},', b'{"ph":"E","name":"x"},', b'{"ph":"B","ts":1,"name":"a"},', b"NaN,", b"\xff",
     b'{"a":NaN,"a":1},', b'{"ph":"X","ts":1e999999,"dur":1},', b'{"ts":0.00000000001,"ph":"i"},',
     b'{"ph":"i","ts":1,"args":{"x":[[[[1]]]]}},'],
)  # fmt: skip
@pytest.mark.parametrize("head", [b"[", b'{"traceEvents":[', b'{"x":'])
def test_any_repetition_takes_time_in_proportion(head: bytes, piece: bytes) -> None:
    data = head + piece * (50_000 // len(piece))
    start = time.process_time()
    with opened(data) as capture:
        capture.summary()
        assert sum(record.nbytes for record in capture.records()) == len(data)
    assert time.process_time() - start < 30  # quadratic, it would take minutes


@pytest.mark.parametrize("depth", [3, 100, 190, 300, 1500, 20_000])
def test_nesting_is_kept_as_json_or_is_a_finding(depth: int) -> None:
    value = "[" * depth + "]" * depth
    raw = f'[{{"ph":"i","ts":1,"args":{{"a":{value}}}}},{{"ph":"i","ts":2}}]'.encode()
    with opened(raw) as capture:
        kept = depth < 200
        assert capture.table("instants").array("ts").tolist() == [1000, 2000][not kept :]
        assert capture.diagnostics.counts == ({} if kept else {"CHJ0102": 1})
        if 16 < depth < 200:
            (name,), (text,) = (capture.table("args").texts(each) for each in ("name", "str"))
            assert str(name).count("[0]") + str(text).count("[") == depth


def test_the_sample_is_sound_and_of_its_size() -> None:
    data = sample(100_000)
    assert 100_000 <= len(data) <= 101_000
    with opened(data) as capture:
        capture.scan()
        assert not len(capture.diagnostics)
        assert len(capture.table("slices")) > 500


def test_limits_are_kept() -> None:
    data = [event("i", 1, name="x" * 50), event("i", 2, name="y", args={"a": "z" * 500})]
    with opened(data, max_string=10, max_record=1 << 20) as capture:
        assert capture.table("instants").texts("name") == ["x" * 10, "y"]
        assert capture.diagnostics.counts["CHJ0111"]
    long = [event("i", at, name="x" * (100 * (at % 3 == 2))) for at in range(9)]
    with opened(long, max_record=100) as capture:
        assert capture.table("instants").array("ts").tolist() == [
            1000 * at for at in range(9) if at % 3 < 2
        ]
        kinds = capture.summary().kinds
        assert (kinds["damaged"], kinds["instant"]) == (3, 6)
        assert capture.diagnostics.counts == {"CHJ0109": 3}
        assert [record.record for record in capture.records()].count("damaged") == 3
    nested = [event("B", at, name=str(at)) for at in range(9)]
    with opened(nested, max_depth=3) as capture:
        assert int(capture.table("slices").array("depth").max()) == 3


# --- At once, or one by one ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_pairs_and_nesting_do_not_depend_on_how_they_are_found(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = np.random.default_rng(seed)
    count = int(chance.integers(1, 400))
    group = chance.integers(0, 3, count)
    ts = np.sort(chance.integers(0, count, count))
    begins = chance.random(count) < (0.5 if seed % 2 else 0.9)
    name = chance.integers(-1, 1 + seed % 3, count).astype(np.int32)
    expected = np.full(count, -1)
    match._pair_each(np.lexsort((ts, group)), group, begins, name, expected)
    assert match.pair(group, ts, begins, name).tolist() == expected.tolist()
    # Well nested: lengths halve with each level.
    level = chance.integers(0, 5, count)
    start = chance.integers(0, 4, count) * 64 // 2**level * 2**level
    end = start + 64 // 2**level - (level > 3)
    points = chance.integers(0, 300, 50)
    of_points = chance.integers(0, 3, 50)
    found = match._enclose_each(group, start, end, of_points, points)
    monkeypatch.setattr(match, "MANY", 1)
    for one, other in zip(match.enclose(group, start, end, of_points, points), found, strict=True):
        assert one.tolist() == other.tolist()


def test_ends_in_order_are_paired_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match, "_pair_each", None)
    given = [event(ph, at, name="n") for at, ph in enumerate("BBEBEEBE")]
    assert [dur for (dur,) in rows(given, "slices", "dur")] == [5000, 1000, 1000, 1000]


# --- In chunks -----------------------------------------------------------------------------------


def many() -> Iterator[dict[str, Any]]:
    chance = random.Random(3)
    for at in range(60):
        for each in EVENTS:
            yield {**each, "ts": at * 100 + each.get("ts", 0), "tid": chance.randrange(3),
                   **({"id": at} if "id" in each else {})}  # fmt: skip


@pytest.mark.parametrize("dump", [json.dumps, lambda x: json.dumps(x, separators=(",", ":")),
                                  lambda x: json.dumps(x, indent=2)])  # fmt: skip
def test_chunks_make_the_same_rows(
    dump: Callable[[Any], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = dump({"traceEvents": list(many()), "more": 1}).encode()
    with opened(data) as capture:
        whole = {name: rows_of(capture.table(name)) for name in capture.schemas}
        summary = capture.summary()
        assert not capture.diagnostics.counts.keys() - {"CHJ0202", "CHJ0201"}
    monkeypatch.setattr(scan, "CHUNK", 4096)
    monkeypatch.setattr(reader, "KEPT_WHOLE", 0)
    with opened(data) as capture:
        assert capture.summary() == summary
        for name, columns in whole.items():
            parts = [rows_of(part) for part in capture.batches(name, 1 << 20)]
            for column, values in columns.items():
                found = list(itertools.chain(*(part[column] for part in parts)))
                assert found == values, (name, column)

"""Chrome JSON as an input: records, exact times, arguments, nesting, and what is wrong."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest

import fxframework as fxf
from fx_trace.chrome import scan
from fx_trace.chrome.sniff import sample
from fxframework.model.capture import Capture
from fxframework.model.schema import ARG_TYPES
from fxframework.testing import Expected, ReaderContract, Sample
from fxframework.testing.cli import run_cli
from fxframework.testing.contracts.checks import rows_of

from ...cases import cases


def event(ph: str, ts: float, **more: Any) -> dict[str, Any]:
    """An event of process 1, thread 2."""
    return {"ph": ph, "ts": ts, "pid": 1, "tid": 2, **more}


EVENTS = [
    {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "shop"}},
    {"ph": "M", "pid": 1, "name": "process_labels", "args": {"labels": "blue"}},
    {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "orders"}},
    event("X", 10, dur=90.5, name="order", cat="shop", args={"paid": True, "lines": [1, {"x": 2}]}),
    event("B", 20.001, name="charge", cat="pay", args={"cents": 2**63, "rate": 0.5, "none": None}),
    event("i", 21, name="retry", s="p", args={"text": 'a "quoted": \\ text \u00e9'}),
    event("C", 22, name="queue", id=7, args={"long": 3, "short": 0.25, "note": "odd"}),
    event("s", 23, name="hand over", cat="flow", id=99),
    event("E", 30.5, args={"result": -1}),
    event("b", 31, name="request", cat="net", id="0x1f"),
    event("n", 31.5, name="first byte", cat="net", id="0x1f", args={"at": 1e-9}),
    {"ph": "f", "ts": 40, "pid": 1, "tid": 3, "name": "hand over", "cat": "flow", "id": 99},
    {"ph": "X", "ts": 41, "dur": 1, "pid": 1, "tid": 3, "name": "ship"},
    event("e", 45, name="request", cat="net", id="0x1f", args={"status": 200}),
    event("N", 50, name="cart", id="0xabc"),
    event("O", 51, name="cart", id="0xabc", args={"snapshot": {"items": 2}}),
]  # fmt: skip
ARRAY = b"[\n" + b",\n".join(json.dumps(each).encode() for each in EVENTS) + b"\n]\n"
OPEN_ARRAY = ARRAY.rstrip()[:-1] + b","
OBJECT = json.dumps(
    {
        "displayTimeUnit": "ns",
        "traceEvents": EVENTS,
        "metadata": {"trace-capture-datetime": "2024-01-01", "nested": [{"a": [1, 2]}, "]}"]},
        "stackFrames": {"1": {"name": "main", "category": "app"}},
    },
    separators=(",", ":"),
).encode()
ODD = (
    b'[{"ph":"X","ts":1,"dur":NaN,"pid":1,"tid":1,"name":"\xff"},\n'
    b'{"ph":"E","ts":2,"pid":1,"tid":1} {"ph":"i","ts":3,"ts":4,"pid":1,"name":"\\ud800"},,\n'
    b'{"ph":"?","ts":"5.0000","pid":"x","tid":[]},{"ph":"i","ts":1e400},{"ph":"C","ts":1},\n'
    b'{"ph":"i","ts":1,"args":{"big":18446744073709551616}},17,{"ph":"B","ts":6,"name":"open"}]\n'
)
KNOWN = Expected(
    rows={"slices": 4, "instants": 2, "counters": 2, "flows": 2, "threads": 2, "processes": 1},
    values={
        "slices": [
            {"name": "order", "ts": 10_000, "dur": 90_500, "depth": 0, "parent": -1},
            {"name": "charge", "ts": 20_001, "dur": 10_499, "depth": 1, "parent": 0},
            {"name": "request", "ts": 31_000, "dur": 14_000, "id": 31},
            {"name": "ship", "ts": 41_000, "dur": 1_000},
        ]
    },
)


class TestReader(ReaderContract):
    plugin = "fx_trace.plugin"
    format = "chrome-json"
    examples = 10

    def samples(self) -> Iterable[Sample]:
        yield Sample("array.json", ARRAY, expected=KNOWN)
        yield Sample("open.json", OPEN_ARRAY, expected=KNOWN)
        yield Sample("object.json", OBJECT, expected=KNOWN)
        yield Sample("odd.json", ODD, sound=False)
        yield Sample("cut.json", OBJECT[:-30], sound=False)

    def foreign(self) -> Mapping[str, bytes]:
        return {
            **super().foreign(),
            "speedscope": b'{"$schema":"https://www.speedscope.app/file-format-schema.json"}',
            "logs": b'[{"message":"ph","level":"info","ts":1}]',
            "records": b'{"format":"trace","version":1}\n{"record":"event","ph":"X"}\n',
        }


def opened(data: Any, **options: Any) -> Capture:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return fxf.open(raw, format="chrome-json", **options)


def rows(data: Any, table: str, *columns: str) -> list[tuple[Any, ...]]:
    with opened(data) as capture:
        return [tuple(getattr(row, name) for name in columns) for row in capture.table(table)]


def codes(data: Any, **options: Any) -> dict[str, int]:
    with opened(data, **options) as capture:
        capture.scan()
        return dict(capture.diagnostics.counts)


# --- Values --------------------------------------------------------------------------------------


def ignored(*_: object, **__: object) -> None:
    pass


def records_of(data: bytes) -> list[tuple[str, bytes]]:
    """Return the kinds of the records of some data, and their bytes without what is behind them."""
    found = []
    for block in scan.Scanner(memoryview(data), 0, ignored).blocks():
        for kind, start, stop in zip(block.kinds, block.starts, block.stops, strict=True):
            found.append((scan.KINDS[kind], data[start:stop]))
    return found


@cases(
    ("data", "expected"),
    [
        (b'1, {"a":"]}\\"["},[[]] ]', [b"1", b'{"a":"]}\\"["}', b"[[]]"]),
        (b" ,\n", []),
        (b'"a\\\\","b', [b'"a\\\\"', b'"b']),
        (b"1,{", [b"1", b"{"]),
        (b"1 2,3", [b"1", b"2", b"3"]),
        (b'tru{"a"}', [b"tru", b'{"a"}']),
        (b"}:]", [b"}:"]),
        (b'"\\', [b'"\\']),
        (b"[" * 50 + b'"]"' + b"]" * 51, [b"[" * 50 + b'"]"' + b"]" * 50]),
    ],
)
def test_values_end_where_their_brackets_do(data: bytes, expected: list[bytes]) -> None:
    found = records_of(b"[" + data)
    assert [raw for kind, raw in found[1:] if kind != "close"] == expected


def end_of_value(data: bytes, begin: int) -> int:
    """Return where a value ends, byte by byte; beyond the data if it does not."""
    at, depth, in_string = begin, 0, False
    while at < len(data):
        letter = data[at : at + 1]
        if in_string:
            at += 2 if letter == b"\\" else 1
            in_string = letter != b'"'
        else:
            is_word = data[begin : begin + 1] not in (b'"', b"[", b"{")
            if is_word and at > begin and letter in b' ,\n\r\t"[]{}':
                return at
            depth += (letter in b"[{") - (letter in b"]}")
            in_string = letter == b'"'
            at += 1
            if is_word:
                continue
        if not depth and not in_string:
            return at
    return at if data[begin : begin + 1] not in (b'"', b"[", b"{") else len(data) + 1


def test_values_at_any_byte_of_anything() -> None:
    chance = random.Random(2)
    for _ in range(2000):
        letters = chance.choice([b'[]{},:"\\ 1a', b"[[[[]]]]", b'[]"'])
        data = b"[" + bytes(chance.choice(letters) for _ in range(chance.randrange(40)))
        offset = 0
        is_closed = False
        for block in scan.Scanner(memoryview(data), 0, ignored).blocks():
            edges = [*itertools.chain(*zip(block.starts, block.stops, strict=True)), block.stop]
            assert edges == sorted(edges)
            assert edges[0] == offset
            offset = block.stop
            is_closed |= scan.CLOSE in block.kinds
            for kind, start, stop in zip(block.kinds, block.starts, block.stops, strict=True):
                end = end_of_value(data, start)
                is_rest = kind == scan.DAMAGED and (is_closed or end > len(data))
                assert kind in {scan.HEADER, scan.CLOSE} or is_rest or stop == end
        assert offset == len(data)


# --- Times ---------------------------------------------------------------------------------------

TIMES = [
    "0", "1", "-1", "0.001", "1.0004", "2.9999", "1e3", "1.5E-3", "8.7", "12562555450.5767",
    "4398046511104.123", "8796093022207.999", "9007199254740.993", "1700000000000000.123",
    "5084893046713.186", "9223372036854775.807", "-9223372036854775.808",
    "1700000000000000.12345678901234567890",
]  # fmt: skip


@cases("quoted", [False, True])
@cases("text", TIMES)
def test_times_are_the_nearest_nanosecond_of_the_text(text: str, quoted: bool) -> None:
    expected = int((Decimal(text) * 1000).to_integral_value(ROUND_HALF_UP))
    shown = f'"{text}"' if quoted else text
    raw = f'[{{"ph":"i","ts":{shown},"pid":1,"tid":1}},{{"ph":"i","ts":7.5,"pid":1,"tid":1}}]'
    assert rows(raw.encode(), "instants", "ts") == [(expected,), (7500,)]


def test_random_times_and_lengths_are_exact() -> None:
    chance = random.Random(5)
    texts = [
        f"{chance.randrange(10**whole)}.{chance.randrange(10**places):0{places}}"
        for places in (1, 2, 3)
        for whole in range(1, 16)
        for _ in range(20)
    ]
    raw = ",".join(f'{{"ph":"X","ts":{a},"dur":{b}}}' for a, b in itertools.pairwise(texts))
    exact = [int(Decimal(text) * 1000) for text in texts]
    assert rows(f"[{raw}]".encode(), "slices", "ts", "dur") == list(itertools.pairwise(exact))


@cases(
    "text", ["null", '"soon"', "[]", "{}", "1e400", '"1e999999999"', "1e300", "true", '""', "NaN"]
)
def test_what_is_no_time_is_a_finding(text: str) -> None:
    raw = f'[{{"ph":"i","ts":{text}}},{{"ph":"i","ts":1}}]'.encode()
    with opened(raw) as capture:
        assert capture.table("instants").array("ts").tolist() == [1000]
        offsets = {each.code: each.offset for each in capture.diagnostics}
        assert offsets["FXT0608"] == 1


@cases(
    ("value", "said"),
    [("null", "null"), ('"soon"', '"soon"'), ('"' + 50 * "x" + '"', '"' + 39 * "x")],
)
def test_a_finding_says_the_value_that_is_no_time(value: str, said: str) -> None:
    with opened(f'[{{"ph":"i","ts":{value}}}]'.encode()) as capture:
        capture.table("instants")
        (finding,) = capture.diagnostics
    assert finding.message.endswith(f": ts is {said}")


# --- Arguments -----------------------------------------------------------------------------------

ARGS = {
    "int": -(1 << 63), "uint": (1 << 64) - 1, "big": 1 << 64, "real": 0.1, "yes": True,
    "none": None, "text": 'é "\\ \n\0', "list": [1, [], {"a": {"b": "c"}}], "empty": {}, "": 1,
}  # fmt: skip


def test_arguments_of_every_type() -> None:
    columns = ("name", "type", "int", "uint", "float", "str")
    shown = {
        name: (ARG_TYPES[kind], *values)
        for name, kind, *values in rows([event("X", 1, dur=1, args=ARGS)], "args", *columns)
    }
    assert shown["int"][:2] == ("int64", -(1 << 63))
    assert shown["uint"][:3] == ("uint64", -1, (1 << 64) - 1)
    assert shown["real"] == ("double", 0, 0, 0.1, None)
    assert shown["yes"][:2] == ("bool", 1)
    assert shown["none"][0] == "null"
    assert shown["text"][-1] == ARGS["text"]
    assert shown["list"][-1] == '[1,[],{"a":{"b":"c"}}]'
    assert shown["empty"][-1] == "{}"
    assert shown[""][:2] == ("int64", 1)
    assert shown["big"][0] == "double"


def test_arguments_of_an_end_are_those_of_its_slice() -> None:
    data = [event("B", 1, name="a"), event("E", 2, args={"x": 1}), event("E", 3, args={"y": 2})]
    assert rows(data, "args", "table", "parent", "name") == [(2, 0, "x"), (2, -1, "y")]


@cases(
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


@cases("token", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_not_json(token: str) -> None:
    with opened(f'[{{"ph":"i","ts":1,"args":{{"a":{token}}}}}]'.encode()) as capture:
        value = capture.table("args").array("float")[0]
        assert repr(float(value)) == repr(float(token))
        assert math.isnan(value) or math.isinf(value)
        assert [each.code for each in capture.diagnostics] == ["FXT0605"]


# --- Phases --------------------------------------------------------------------------------------


def test_every_phase_has_its_table_or_is_said_to_have_none() -> None:
    with opened(OBJECT) as capture:
        assert [row.name for row in capture.table("processes")] == ["shop"]
        assert capture.table("threads").texts("name") == ["orders", None]
        flows = [(row.phase, row.slice) for row in capture.table("flows")]
        assert flows == [(0, 1), (2, 3)], "the end binds to the slice that begins next"
        instants = [(row.name, row.scope, row.id) for row in capture.table("instants")]
        assert instants == [("retry", 1, 0), ("first byte", 255, 31)]
        messages = [each.message for each in capture.diagnostics]
        assert len(messages) == 2
        assert all("in no table" in message for message in messages)
    enclosing = [event("X", 1, dur=5, name="a"), event("f", 2, id=1, bp="e"), event("f", 3, id=1)]
    assert rows(enclosing, "flows", "slice") == [(0,), (0,)]


def test_complete_events_nest_in_whatever_order_they_are_written() -> None:
    spans = [(5, 1), (0, 10), (1, 3), (1, 2), (12, 1), (4, 4), (0, 20)]
    given = [event("X", ts, dur=dur, name=f"{ts}+{dur}") for ts, dur in spans]
    names = [row["name"] for row in given]
    for order in itertools.islice(itertools.permutations(range(len(spans))), 0, None, 97):
        made = rows([given[place] for place in order], "slices", "name", "parent", "depth")
        above = {name: made[parent][0] if parent >= 0 else None for name, parent, _ in made}
        assert above == {
            names[6]: None, names[1]: names[6], names[2]: names[1], names[3]: names[2],
            names[5]: names[1], names[0]: names[5], names[4]: names[6],
        }  # fmt: skip
        assert {name: depth for name, _, depth in made}[names[0]] == 3


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


# --- What is wrong -------------------------------------------------------------------------------


def test_findings_say_where() -> None:
    with opened(ODD) as capture:
        capture.scan()
        where = {(each.code, each.offset) for each in capture.diagnostics}
    at = {text: ODD.index(text) for text in (b"17", b'{"ph":"E"', b'{"ph":"?"', b'{"ph":"B"',
                                             b'{"ph":"i","ts":3')}  # fmt: skip
    assert {("FXT0603", at[b"17"]), ("FXT0302", at[b'{"ph":"E"']), ("FXT0610", at[b'{"ph":"?"']),
            ("FXT0303", at[b'{"ph":"B"']), ("FXT0605", at[b'{"ph":"E"']),
            ("FXT0605", at[b'{"ph":"i","ts":3']), ("FXT0605", 1),
            ("FXT0608", 1)} <= where  # fmt: skip


@cases(
    ("data", "code"),
    [
        (b"hello", "FXT0604"),
        (b'{"traceEvents":[{"ph":"i","ts":1}', "FXT0602"),
        (b'{"a":1', "FXT0602"),
        (b'[{"ph":"i","ts":1}] and more', "FXT0604"),
        (b'{"traceEvents":[], no key}', "FXT0604"),
        (b'{"a"', "FXT0604"),
        (b'[{"ph":"X","ts":1,"name":7,"dur":"long"}]', "FXT0608"),
        (b'[{"ph":"i","ts":1,"ts":2,}]', "FXT0603"),
    ],
)
def test_what_departs_from_the_form_is_a_finding(data: bytes, code: str) -> None:
    assert code in codes(data)


def test_reading_goes_on_behind_an_event_that_does_not_end() -> None:
    data = (
        b'[{"ph":"i","ts":1},{"ph":"i","name":"open,"ts":2},\n{"ph":"i","ts":3},{"ph":"i","ts":4}]'
    )
    with opened(data) as capture:
        assert capture.table("instants").array("ts").tolist()[-1] == 4000
        assert b"".join(record.raw for record in capture.records()) == data  # type: ignore[attr-defined]


@cases("form", [ARRAY, OBJECT, ODD])
def test_truncated_at_every_tenth_byte(form: bytes) -> None:
    with opened(form) as capture:
        whole = [record.to_json() for record in capture.records()]
    for length in range(0, len(form), 10):
        with opened(form[:length]) as capture:
            kept = [r for r in whole if r["offset"] + r["nbytes"] <= length]
            assert [record.to_json() for record in capture.records()][: len(kept)] == kept
            capture.scan()
            assert all(each.offset is None or each.offset <= length for each in capture.diagnostics)


HEADS = (b"[", b'{"traceEvents":[', b'{"x":', b"{")
"""Where a repetition may stand: among events, twice, in a value that is passed over, and alone."""
PIECES = (
    b"[", b"{", b'{"a":', b'"', b"\\", b'"\\', b'},{"', b'{[ },{"', b"}", b"]", b",", b" ", b"1",
    b'{"ph":"B"},', b'{"ph":"E","name":"x"},', b'{"ph":"B","ts":1,"name":"a"},', b"NaN,", b"\xff",
    b'{"a":NaN,"a":1},', b'"x":1,', b'{"ph":"X","ts":1e999999,"dur":1},',
    b'{"ts":0.00000000001,"ph":"i"},', b'{"ph":"i","ts":1,"args":{"x":[[[[1]]]]}},',
)  # fmt: skip


@cases("number,piece", enumerate(PIECES))
def test_any_repetition_takes_time_in_proportion(number: int, piece: bytes) -> None:
    """Bytes that open or close something stand at each place, others at one."""
    heads = HEADS if len(piece) == 1 else HEADS[number % len(HEADS) :][:1]
    for head in heads:
        data = head + piece * (20_000 // len(piece))
        start = time.process_time()
        with opened(data) as capture:
            capture.summary()
            assert sum(record.nbytes for record in capture.records()) == len(data)
        assert time.process_time() - start < 2  # quadratic, it would take many times as long


@cases("depth", [3, 60, 70, 300, 20_000])
@cases("opening", ["[", '{"a":'])
@cases("key", ["args", "ts", "dur", "name", "pid", "id", "ph"])
def test_nesting_is_kept_as_json_or_is_a_finding(depth: int, opening: str, key: str) -> None:
    """A value has up to 64 levels."""
    value = opening * depth + "1" + ("]" if opening == "[" else "}") * depth
    odd = {"ph": "X", "ts": 1, "dur": 1, key: "@"}
    raw = json.dumps([odd, event("i", 2)]).replace('"@"', value).encode()
    with opened(raw) as capture:
        capture.scan()
        assert 2000 in capture.table("instants").array("ts").tolist()
        assert ("FXT0602" in capture.diagnostics.counts) == (depth > 64)
        if key == "args" and depth <= 64:
            (text,) = capture.table("args").texts("str")[-1:]
            assert str(text).count(opening[-1]) >= depth - 1


def test_limits_are_kept() -> None:
    data = [event("i", 1, name="x" * 50), event("i", 2, name="y", args={"a": "z" * 500})]
    with opened(data, max_string=10, max_record=1 << 20) as capture:
        assert capture.table("instants").texts("name") == ["x" * 10, "y"]
        assert capture.diagnostics.counts["FXT0116"] == 2
    long = [event("i", at, name="x" * (100 * (at % 3 == 2))) for at in range(9)]
    with opened(long, max_record=100) as capture:
        assert capture.table("instants").array("ts").tolist() == [
            1000 * at for at in range(9) if at % 3 < 2
        ]
        kinds = capture.summary().kinds
        assert (kinds["damaged"], kinds["instant"]) == (3, 6)
        assert capture.diagnostics.counts == {"FXT0008": 3}
        assert [record.record for record in capture.records()].count("damaged") == 3
    nested = [event("B", at, name=str(at)) for at in range(9)]
    with opened(nested, max_depth=3) as capture:
        assert int(capture.table("slices").array("depth").max()) == 3


# --- Files ---------------------------------------------------------------------------------------


def test_it_is_detected_also_if_packed(tmp_path: Path) -> None:
    files = {
        "a.json": OBJECT,
        "b": ARRAY,
        "c.json.gz": gzip.compress(OBJECT),
        "d.trace.json": ARRAY,
    }
    for name, data in files.items():
        path = tmp_path / name
        path.write_bytes(data)
        with fxf.open(path) as capture:
            assert capture.format == "chrome-json"
            assert len(capture.table("slices")) == 4


def test_other_json_of_a_folder_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text('{"steps": []}')
    (tmp_path / "a.json").write_bytes(OBJECT)
    done = run_cli("batch", tmp_path, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.stderr


def test_points_of_flows_stay_at_their_slices(tmp_path: Path) -> None:
    """In Chrome JSON again, an end at the slice around it and one at the next slice differ."""
    points = [
        event("X", 10, dur=10, name="around"),
        event("s", 11, name="f", cat="c", id=1),
        event("t", 12, name="f", cat="c", id=1),
        event("f", 13, name="f", cat="c", id=1, bp="e"),
        event("s", 14, name="g", cat="c", id=2),
        event("f", 21, name="g", cat="c", id=2),
        event("X", 22, dur=1, name="next"),
        event("s", 30, name="h", cat="c", id=3),
    ]
    path, again = tmp_path / "a.trace.json", tmp_path / "again.trace.json"
    path.write_text(json.dumps(points))
    fxf.convert(path, again)
    with fxf.open(path) as read, fxf.open(again) as written:
        for column in ("ts", "id", "phase", "slice"):
            values = written.table("flows").array(column).tolist()
            assert values == read.table("flows").array(column).tolist()
        assert written.table("flows").array("slice").tolist() == [0, 0, 0, 0, 1, -1]


def test_it_becomes_a_trace(tmp_path: Path) -> None:
    source, target = tmp_path / "a.json", tmp_path / "a.fxt"
    source.write_bytes(OBJECT)
    done = run_cli("convert", source, target)
    assert done.exit_code == 0, done.stderr
    columns = ("name", "ts", "dur")
    with fxf.open(target) as capture, fxf.open(source) as read:
        for name in columns:
            assert list(capture.table("slices").plain(name)) == list(
                read.table("slices").plain(name)
            )


def test_the_sample_is_sound_and_of_its_size() -> None:
    data = sample(100_000)
    assert 100_000 <= len(data) <= 101_000
    with opened(data) as capture:
        capture.scan()
        assert not len(capture.diagnostics)
        assert len(capture.table("slices")) > 500


def many() -> Iterator[dict[str, Any]]:
    chance = random.Random(3)
    for at in range(60):
        for each in EVENTS:
            yield {**each, "ts": at * 100 + each.get("ts", 0), "tid": chance.randrange(3),
                   **({"id": at} if "id" in each else {})}  # fmt: skip


@cases("dump", [json.dumps, lambda x: json.dumps(x, separators=(",", ":")),
                                  lambda x: json.dumps(x, indent=2)])  # fmt: skip
def test_blocks_make_the_same_rows(
    dump: Callable[[Any], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = dump({"traceEvents": list(many()), "more": 1}).encode()
    with opened(data) as capture:
        whole = {name: rows_of(capture.table(name)) for name in capture.schemas}
        summary = capture.summary()
    monkeypatch.setattr(scan, "BLOCK_BYTES", 999)
    with opened(data) as capture:
        assert capture.summary() == summary
        assert {name: rows_of(capture.table(name)) for name in capture.schemas} == whole

"""`text`, `json` and `llvm-yaml` of XRay traces: what llvm-xray prints, and what it leaves out."""

from __future__ import annotations

import json
import re
import struct
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fx_xray import plugin
from fx_xray.export.presentation import Batch, walk
from fx_xray.export.text import _TextLines, duration, seconds
from fx_xray.export.trace_event import microseconds
from fx_xray.read.views import Calls
from fx_xray.read.yaml_text import quoted as scalar
from fx_xray.sample import sample
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.kit.in_time import Events, InTime
from fxframework.kit.row_texts import json_string
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX
from fxframework.model.selection import Selection
from fxframework.model.strings import TextColumn
from fxframework.registry import parse_options
from fxframework.testing import open_bytes

from ...cases import cases

TRACES = Path(__file__).parents[2] / "conformance" / "xray"
SINGLE = TRACES / "fdr5-single-clang19.xray"
U64 = st.integers(0, (1 << 64) - 1)


def expected(name: str) -> dict[str, Path]:
    """Traces of which llvm-xray's own output of that name is there."""
    found = {}
    for path in sorted(TRACES.rglob(f"expected/*/{name}")):
        trace = path.parents[2] / f"{path.parent.name}.xray"
        found[f"{path.parents[2].name}/{trace.stem}"] = trace
    return found


YAML = expected("convert.yaml")
JSON = expected("trace_event.json")
ALL = {path.stem: path for path in sorted(TRACES.rglob("*.xray")) if path.stat().st_size > 32}


def format_of(data: bytes) -> str:
    return "xray" if data[2:4] == b"\x01\x00" else "xray-basic"


@contextmanager
def opened(data: bytes | Path, **options: Any) -> Iterator[Capture]:
    data = data if isinstance(data, bytes) else data.read_bytes()
    readers = {reader.format: reader for reader in plugin.fx_readers()}
    with open_bytes(readers[format_of(data)], data, options=options) as capture:
        yield capture


def export(name: str, *captures: Capture, **options: Any) -> tuple[str, Mapping[str, int]]:
    exporter = next(
        one
        for one in plugin.fx_exporters()
        if one.name == name and one.accepts == captures[0].format
    )
    sink = Sink.memory()
    session = exporter.open(sink, parse_options(options, exporter.options, whose=name))
    for capture in captures:
        session.write(capture)
    return sink.getvalue().decode(), session.close()


def exported(name: str, trace: bytes | Path, **options: Any) -> str:
    with opened(trace) as capture:
        return export(name, capture, **options)[0]


# --- Traces made by hand -------------------------------------------------------------------------

ENTER, EXIT, TAIL, ENTER_ARG = range(4)
RATE = 1_000_000_000


def call(kind: int, function: int, delta: int = 10) -> bytes:
    return struct.pack("<II", function << 4 | kind << 1, delta)


def meta(kind: int, form: str, *values: int) -> bytes:
    return bytes([kind << 1 | 1]) + struct.pack(f"<{form}", *values).ljust(15, b"\0")


def argument(value: int) -> bytes:
    return meta(6, "Q", value)


def custom(data: bytes, delta: int = 10) -> bytes:
    return meta(5, "ii", len(data), delta) + data


def typed(data: bytes, type: int, delta: int = 10) -> bytes:
    return meta(8, "iiH", len(data), delta, type) + data


def buffer(*records: bytes, thread: int = 1, process: int = 7, tsc: int = 1000) -> bytes:
    body = b"".join(
        [
            meta(0, "i", thread),
            meta(4, "qi", 5, 6),
            meta(9, "i", process),
            meta(2, "HQ", 3, tsc),
            *records,
        ]
    )
    return meta(7, "Q", len(body)) + body


def log(*buffers: bytes, rate: int = RATE) -> bytes:
    return struct.pack("<HHIQQQ", 5, 1, 3, rate, 16384, 0) + b"".join(buffers)


NESTED = log(
    buffer(
        call(ENTER, 1),
        call(ENTER, 2),
        call(EXIT, 9),
        call(ENTER, 3),
        call(ENTER_ARG, 4),
        argument(1 << 63),
        argument(5),
        custom(b"so\n"),
        typed(b"\xff\0", 65535, -3),
        call(EXIT, 2),
        call(TAIL, 1),
        call(EXIT, 1),
        call(ENTER, 5),
    )
)
"""An exit of nobody, one that ends three calls at once, and a call that goes on."""


# --- text ----------------------------------------------------------------------------------------


def test_text_of_a_real_trace() -> None:
    """When, who, where, and what, indented."""
    lines = exported("text", SINGLE).splitlines()
    assert lines[:4] == [
        "     112    930.526583589 12670/12670 cpu0 enter #9",
        "     120    930.526603779 12670/12670 cpu0   enter #7 +52416",
        "     128    930.526608927 12670/12670 cpu0     enter #3 +13364",
        "     136    930.526608997 12670/12670 cpu0     exit #3 dur=70ns +182",
    ]
    assert "enter_arg #2 arg0=0 +234" in lines[13]
    assert 'custom_event size=26 "custom event 0 of thread 0" +26546' in "\n".join(lines)


def test_text_of_calls_that_do_not_match() -> None:
    lines = [line[35:] for line in exported("text", NESTED).splitlines()]
    assert lines == [
        "enter #1",
        "  enter #2 +10",
        "    exit #9 unmatched +10",
        "    enter #3 +10",
        "      enter_arg #4 arg0=9223372036854775808 arg1=5 +10",
        '        custom_event size=3 "so\\n" +10',
        "        typed_event type=65535 size=2 [ff 00] -3",
        "  exit #2 dur=47ns unwound=2 +10",
        "tail_exit #1 dur=67ns +10",
        "exit #1 unmatched +10",
        "enter #5 +10",
    ]


@cases("trace", ALL.values(), ids=ALL)
def test_every_event_has_a_line(trace: Path) -> None:
    with opened(trace) as capture:
        kinds = np.concatenate([np.zeros(0), *(batch.kind for batch in capture.events())])  # type: ignore[attr-defined]
        events = np.count_nonzero(kinds != 4)
        if not events:
            with pytest.raises(WriteRefusedError, match="no event"):
                export("text", capture)
            return
        text, _ = export("text", capture)
    assert text.count("\n") == events


@cases("trace", ALL.values(), ids=ALL)
def test_every_record_has_a_line_with_metadata(trace: Path) -> None:
    with opened(trace) as capture:
        text, _ = export("text", capture, metadata=True)
        offsets = [
            record.offset
            for record in capture.records()
            if record.to_json()["record"] != "call_argument"
        ]
        codes = capture.diagnostics.counts
    if "FXX0205" not in codes:  # records cut in half are read another way in tables
        assert sorted(int(line[:8]) for line in text.splitlines()) == offsets


def test_metadata_stands_beside_its_events() -> None:
    lines = exported("text", NESTED, metadata=True).splitlines()
    assert [line.split(" -- ")[1] for line in lines[:6]] == [
        (
            "file_header version=5 type=1 constant_tsc=true nonstop_tsc=true "
            "cycle_frequency=1000000000 buffer_size=16384"
        ),
        f"buffer_extents bytes={len(NESTED) - 48}",
        "new_buffer thread=1",
        "wall_time seconds=5 micros=6",
        "pid process=7",
        "new_cpu cpu=3 tsc=1000 thread=1 process=7",
    ]
    assert lines[6].endswith("enter #1")


def test_threads_are_merged_and_nest_by_themselves() -> None:
    trace = log(
        buffer(call(ENTER, 1, 0), call(EXIT, 1, 100), thread=1, tsc=1000),
        buffer(call(ENTER, 2, 0), call(EXIT, 2, 20), thread=2, tsc=1050),
    )
    assert [line.split()[2:5:2] + line.split()[5:6] for line in
            exported("text", trace).splitlines()] == [
        ["7/1", "enter", "#1"],
        ["7/2", "enter", "#2"],
        ["7/2", "exit", "#2"],
        ["7/1", "exit", "#1"],
    ]  # fmt: skip


def test_times_as_asked_for() -> None:
    trace = log(buffer(call(ENTER, 1, 0), call(EXIT, 1, 1500), tsc=3_000_000_000))
    for time, shown in (
        ("clock", ["     3.000000000", "     3.000001500"]),
        ("first", ["     0.000000000", "     0.000001500"]),
        ("ticks", ["      3000000000", "      3000001500"]),
    ):
        lines = exported("text", trace, time=time).splitlines()
        assert [line[9:25] for line in lines] == shown
    with pytest.raises(UsageError, match="invalid time 'fist'"):
        exported("text", trace, time="fist")


def test_deep_calls_are_not_indented_without_end() -> None:
    trace = log(buffer(*[call(ENTER, 1)] * 3000))
    text = exported("text", trace)
    assert max(map(len, text.splitlines())) < 200
    assert "[2999] enter #1" in text


def test_a_log_without_records_has_a_header_only() -> None:
    for name, holds in (("json", '"traceEvents"'), ("llvm-yaml", "records:  ")):
        assert holds in exported(name, log())
    for data in (log(), b"\5\0\1"):
        with opened(data) as capture, pytest.raises(WriteRefusedError, match="nothing to write"):
            export("text", capture)


@cases(
    ("ns", "shown"),
    [
        (0, "0ns"),
        (999, "999ns"),
        (1000, "1us"),
        (999_999, "999.999us"),
        (1_000_001, "1.000001ms"),
        (999_999_999, "999.999999ms"),
        (1_000_000_000, "1s"),
        ((1 << 62) + 1, "4611686018.427387905s"),
        (-2500, "-2.5us"),
    ],
)
def test_durations(ns: int, shown: str) -> None:
    assert duration(ns) == shown


@given(st.integers(-(1 << 63), 1 << 70))
def test_seconds_are_exact(ns: int) -> None:
    assert Fraction(seconds(ns)) == Fraction(ns, 10**9)


def names_of(tmp_path: Path, *names: str) -> dict[str, str]:
    """Options that name functions 1, 2, ..."""
    path = tmp_path / "names.csv"
    rows = [f'{number},"{name}"' for number, name in enumerate(names, 1)]
    path.write_text("\n".join(["function_id,name", *rows, ""]), "utf-8")
    return {"instr_map": str(path)}


def test_names_stand_with_their_ids(tmp_path: Path) -> None:
    trace = log(buffer(call(ENTER, 1), call(ENTER, 2), call(EXIT, 2), call(EXIT, 1)))
    with opened(trace, **names_of(tmp_path, "main", "f(int, char)")) as capture:
        text, _ = export("text", capture)
        shown, _ = export("json", capture)
        yaml, _ = export("llvm-yaml", capture)
    assert [line[35:].partition(" dur")[0] for line in text.splitlines()][:2] == [
        "enter main #1",
        "  enter f(int, char) #2 +10",
    ]
    assert [event["name"] for event in json.loads(shown)["traceEvents"]][:2] == [
        "main",
        "f(int, char)",
    ]
    assert "function: main," in yaml
    assert "function: 'f(int, char)'," in yaml


# --- json ----------------------------------------------------------------------------------------


def events_of(shown: str) -> list[tuple[Any, ...]]:
    """Begins and ends with the names of their stacks, whatever the stacks are numbered."""
    data = json.loads(shown)
    frames = data["stackFrames"]

    def stack(number: str) -> tuple[str, ...]:
        frame = frames[str(number)]
        below = stack(frame["parent"]) if "parent" in frame else ()
        return (*below, frame["name"])

    return [
        (event["name"], event["ph"], event["tid"], event["pid"], event["ts"], stack(event["sf"]))
        for event in data["traceEvents"]
        if event["ph"] in ("B", "E")
    ]


@cases("trace", JSON.values(), ids=JSON)
def test_json_in_strings_is_what_llvm_xray_writes(trace: Path) -> None:
    theirs = events_of(
        (trace.parent / "expected" / trace.stem / "trace_event.json").read_text("utf-8")
    )
    ours = events_of(exported("json", trace, strings=True))
    assert Counter(ours) == Counter(theirs)
    for thread in {event[2] for event in theirs}:
        mine, its = ([e for e in events if e[2] == thread] for events in (ours, theirs))
        assert mine == its


def nested(events: Sequence[Mapping[str, Any]]) -> Counter[tuple[Any, ...]]:
    """Slices as a viewer nests them: name, thread, depth, begin and end in ns."""
    found: Counter[tuple[Any, ...]] = Counter()
    stacks: dict[tuple[int, int], list[tuple[str, int]]] = defaultdict(list)
    for event in events:
        ns = int(Fraction(str(event["ts"])) * 1000)
        stack = stacks[event["pid"], event["tid"]]
        if event["ph"] == "B":
            stack.append((event["name"], ns))
        elif event["ph"] == "E":
            name, begin = stack.pop()
            assert name == event["name"]
            found[name, event["tid"], len(stack), begin, ns - begin] += 1
    for (_, tid), stack in stacks.items():
        for depth, (name, begin) in enumerate(stack):
            found[name, tid, depth, begin, -1] += 1
    return found


@cases("trace", ALL.values(), ids=ALL)
def test_json_nests_as_the_tables_do(trace: Path) -> None:
    with opened(trace) as capture:
        shown, dropped = export("json", capture)
        slices, threads = capture.table("slices"), capture.table("threads")
        found = capture.diagnostics.counts
    tids = dict(zip(threads.array("id").tolist(), threads.array("tid").tolist(), strict=True))
    columns = [slices.array(name).tolist() for name in ("thread", "depth", "ts", "dur")]
    expected = Counter(
        (name, tids[thread] & 0xFFFFFFFF, depth, ts, dur)
        for name, thread, depth, ts, dur in zip(slices.texts("name"), *columns, strict=True)
    )
    assert dropped.get("exits without entries", 0) == found.get("FXX0301", 0)
    if "times that go back" not in dropped and "FXX0305" not in found:
        assert nested(json.loads(shown, parse_float=str)["traceEvents"]) == expected


def test_json_has_arguments_and_events() -> None:
    events = json.loads(exported("json", NESTED))["traceEvents"]
    assert [(event["ph"], event["name"], event["ts"]) for event in events] == [
        ("B", "1", 1.01),
        ("B", "2", 1.02),
        ("B", "3", 1.04),
        ("B", "4", 1.05),
        ("i", "custom_event", 1.06),
        ("i", "typed_event", 1.057),
        ("E", "4", 1.067),
        ("E", "3", 1.067),
        ("E", "2", 1.067),
        ("E", "1", 1.077),
        ("B", "5", 1.097),
    ]
    assert [event["args"] for event in events if "args" in event] == [
        {"arg0": 1 << 63, "arg1": 5},
        {"data": "so\n"},
        {"event_type": 65535, "data_hex": "ff00"},
    ]
    with opened(NESTED) as capture:
        _, dropped = export("json", capture)
        assert dropped == {"exits without entries": 2}
        shown, dropped = export("json", capture, events=False)
    assert "custom_event" not in shown
    assert dropped == {
        "arguments": 2,
        "custom and typed events": 2,
        "exits without entries": 2,
    }


def test_json_calls_whose_times_go_back_still_nest() -> None:
    """A thread moves to a CPU whose counter is behind."""
    trace = log(buffer(call(ENTER, 1), call(ENTER, 2), meta(2, "HQ", 4, 500), call(EXIT, 2, 0),
                       call(EXIT, 1, 600)))  # fmt: skip
    with opened(trace) as capture:
        shown, dropped = export("json", capture)
    assert [(event["ph"], event["ts"]) for event in json.loads(shown)["traceEvents"]] == [
        ("B", 1.01),
        ("B", 1.02),
        ("E", 1.02),
        ("E", 1.1),
    ]
    assert dropped == {"times that go back": 1}


def test_json_without_a_rate_takes_ticks_for_nanoseconds() -> None:
    trace = log(buffer(call(ENTER, 1, 5), tsc=1000), rate=0)
    assert json.loads(exported("json", trace))["traceEvents"][0]["ts"] == 1.005


def test_json_of_a_clock_since_1970_loses_nothing() -> None:
    trace = log(buffer(call(ENTER, 1, 5), tsc=1_795_207_568_986_560_300))
    assert '"ts":1795207568986560.305,' in exported("json", trace)


@cases("name", ["json", "llvm-yaml"])
def test_there_is_no_room_for_a_second_capture(name: str) -> None:
    with (
        opened(NESTED) as first,
        opened(NESTED) as second,
        pytest.raises(WriteRefusedError, match="one capture"),
    ):
        export(name, first, second)


def test_quoted_text_is_json_that_perfetto_takes() -> None:
    for text in ("", "a", 'b"\\', "\\", "\x7f", "é\n"):
        assert json.loads(json_string(text)) == text
        assert "\x7f" not in json_string(text)
        assert not json_string(text).endswith('\\"')


@given(
    st.lists(U64, max_size=5),
    st.one_of(st.integers(1, 10**10), st.integers(1, (1 << 64) - 1)),
    st.sampled_from([3, 4]),
    st.booleans(),
)
def test_microseconds_are_exact(ticks: list[int], rate: int, digits: int, nearest: bool) -> None:
    shown = microseconds(np.array(ticks, np.uint64), rate, digits=digits, nearest=nearest)
    for tick, text in zip(ticks, shown, strict=True):
        exact = Fraction(tick * 10**6, rate)
        off = exact - Fraction(text)
        step = Fraction(1, 10**digits)
        assert -step / 2 <= off <= step / 2 if nearest else 0 <= off < step
        assert re.fullmatch(rf"\d+\.\d{{{digits}}}", text)


# --- llvm-yaml -----------------------------------------------------------------------------------

EVENT = re.compile(
    r"type: (\d+), func-id: \d+, function: '\d+', cpu: (\d+), (.*) kind: (custom|typed)-event, "
    r"(tsc: \d+), data: (.*) }"
)


def sound(lines: Sequence[str], *, absolute: bool) -> list[str]:
    """Lines of YAML without what llvm-xray gets wrong.

    Its events have the function of the record before, its records the type of the last typed
    event, and of payloads it drops what comes behind the first byte that is not UTF-8. Where
    events have times of their own (``absolute``) it takes padding for their CPU.
    """
    out = []
    for line in lines:
        event = EVENT.search(line)
        if event is None:
            out.append(re.sub(r"type: \d+, func-id", "type: 0, func-id", line))
            continue
        type, cpu, who, kind, tsc, data = event.groups()
        data = data.partition("\ufffd")[0].rstrip('"')
        out.append(
            f"{type if kind == 'typed' else 0} {'' if absolute else cpu} {who} {kind} {tsc} {data}"
        )
    return out


def by_time(lines: Sequence[str]) -> list[list[str]]:
    """Lines of one time in an order of their own: of threads it is chance in llvm-xray."""
    groups: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        groups[line.partition("tsc: ")[2].partition(",")[0].partition(" ")[0]].append(line)
    return [sorted(group) for group in groups.values()]


@cases("trace", YAML.values(), ids=YAML)
def test_yaml_is_what_llvm_xray_writes(trace: Path) -> None:
    theirs = (trace.parent / "expected" / trace.stem / "convert.yaml").read_text("utf-8")
    ours = exported("llvm-yaml", trace)
    absolute = trace.read_bytes()[0] < 5
    mine, its = (sound(text.splitlines(), absolute=absolute) for text in (ours, theirs))
    assert mine[:8] == its[:8]
    assert by_time(mine) == by_time(its)
    if "-event" not in theirs and by_time(mine) == [[line] for line in mine]:
        assert ours == theirs


def test_yaml_is_of_the_version_of_the_log_or_of_that_which_llvm_xray_reads() -> None:
    with opened(SINGLE) as capture:
        own = capture.version
    assert own != 1
    assert f"  version:         {own}\n" in exported("llvm-yaml", SINGLE)
    assert "  version:         1\n" in exported("llvm-yaml", SINGLE, header_version="1")
    with pytest.raises(UsageError, match="invalid header_version '5'"):
        exported("llvm-yaml", SINGLE, header_version="5")


def test_yaml_of_every_kind() -> None:
    with opened(NESTED) as capture:
        yaml, dropped = export("llvm-yaml", capture)
    on = "thread: 1, process: 7, kind"
    assert [line for line in yaml.splitlines() if "tsc: 10" in line][3:7] == [
        (
            f"  - {{ type: 0, func-id: 3, function: '3', cpu: 3, {on}: function-enter, tsc: 1040, "
            "data: '' }"
        ),
        (
            "  - { type: 0, func-id: 4, function: '4', args: [ 9223372036854775808, 5 ], cpu: 3, "
            f"{on}: function-enter-arg, tsc: 1050, data: '' }}"
        ),
        (
            "  - { type: 65535, func-id: 0, function: '0', cpu: 3, "
            f'{on}: typed-event, tsc: 1057, data: "\ufffd\\0" }}'
        ),
        (
            "  - { type: 0, func-id: 0, function: '0', cpu: 3, "
            f'{on}: custom-event, tsc: 1060, data: "so\\n" }}'
        ),
    ]
    assert dropped == {"payloads that are not UTF-8, in part": 1}
    unsorted = exported("llvm-yaml", NESTED, sort=False)
    assert unsorted.index("tsc: 1060") < unsorted.index("tsc: 1057")
    assert sorted(unsorted.splitlines()) == sorted(yaml.splitlines())


@cases(
    ("text", "shown"),
    [
        ("", "''"),
        ("main", "main"),
        ("a b", "a b"),
        (" a", "' a'"),
        ("a ", "'a '"),
        ("9", "'9'"),
        ("0x1F", "'0x1F'"),
        ("1e5", "'1e5'"),
        (".nan", "'.nan'"),
        ("true", "'true'"),
        ("~", "'~'"),
        ("f(int)", "'f(int)'"),
        ("a,b", "'a,b'"),
        ("it's", "'it''s'"),
        ("-", "'-'"),
        ("a-b", "a-b"),
        ("a\nb", r'"a\nb"'),
        ('\x01"\\', r'"\x01\"\\"'),
        ("\x7f", r'"\x7F"'),
        ("é", '"é"'),
        ("\u2028\u200b\x85", r'"\L\u200B\N"'),
        ("\U000e0001", r'"\U000E0001"'),
    ],
)
def test_scalars_of_yaml(text: str, shown: str) -> None:
    assert scalar(text) == shown


@given(st.lists(st.lists(st.integers(0, 40), max_size=9), max_size=6))
def test_batches_are_put_in_order_of_time(times: list[list[int]]) -> None:
    """Stable, with nothing lost, and nothing held that could go."""
    emitted: list[Events] = []
    number = 0
    with InTime(emitted.append) as ordered:
        for place, some in enumerate(times):
            text = TextColumn.of(str(at) for at in range(number, number + len(some)))
            number += len(some)
            sizes, none = np.diff(text.offsets), np.zeros((0, len(some)), np.int64)
            events = Events(np.array(some, np.int64), text.data, text.offsets[:-1], sizes, none)
            later = [each for batch in times[place + 1 :] for each in batch]
            ordered.add(events, min(later, default=NS_MAX + 1))
            given = [each for batch in times[: place + 1] for each in batch]
            assert sum(map(len, emitted)) == sum(each < min(later, default=41) for each in given)
    found = [(int(at), int(text)) for events in emitted
             for at, text in zip(events.times, events.text(), strict=True)]  # fmt: skip
    wanted = [each for some in times for each in some]
    assert found == sorted(zip(wanted, range(number), strict=True))


# --- Parts of a trace ----------------------------------------------------------------------------


def test_a_part_has_its_calls_whole() -> None:
    """Of a stretch of time: the calls that it touches, their entries and exits."""
    with opened(NESTED) as capture:
        part = capture.between(1057, 1058)
        text, _ = export("text", part)
        shown, dropped = export("json", part)
        yaml, _ = export("llvm-yaml", part)
    assert [line[35:].split(" dur")[0].split(" +")[0].strip() for line in text.splitlines()] == [
        "enter #1",
        "enter #2",
        "enter #3",
        "enter_arg #4 arg0=9223372036854775808 arg1=5",
        "typed_event type=65535 size=2 [ff 00] -3",
        "exit #2",
        "tail_exit #1",
    ]
    assert [event["ph"] for event in json.loads(shown)["traceEvents"]] == list("BBBBiEEEE")
    assert dropped == {}
    assert yaml.count(" tsc:") == 7


def test_a_part_of_some_threads() -> None:
    trace = log(
        buffer(call(ENTER, 1), call(EXIT, 1), custom(b"a"), thread=1),
        buffer(call(ENTER, 2), call(EXIT, 2), custom(b"b"), call(EXIT, 3), thread=2),
    )
    with opened(trace) as capture:
        part = capture.select(Selection(threads=("7/2",)))
        text, _ = export("text", part, metadata=True)
        assert export("text", part)[0].count("\n") == 4
    assert "7/1" not in text
    assert "thread=1" not in text
    assert "thread=2" in text


# --- YAML of llvm-xray as a source ---------------------------------------------------------------


@cases("trace", [SINGLE, TRACES / "basic3-mt-clang16.xray"], ids=str)
def test_yaml_says_the_same_as_its_trace(trace: Path) -> None:
    """What reads the YAML gives the same events again, save for where they stand."""
    readers = {reader.format: reader for reader in plugin.fx_readers()}
    written = exported("llvm-yaml", trace)
    with open_bytes(readers["llvm-yaml"], written.encode()) as capture:
        assert export("llvm-yaml", capture)[0] == written
        assert export("json", capture)[0] == exported("json", trace)
        lines = export("text", capture)[0].splitlines()
    assert [line[9:] for line in lines] == [
        line[9:] for line in exported("text", trace).splitlines()
    ]


# --- By columns ----------------------------------------------------------------------------------


@cases("time", ["ticks", "first", "clock"])
@cases("trace", [None, NESTED, *ALL.values()], ids=["sample", "nested", *ALL])
def test_lines_by_columns_are_those_made_one_by_one(trace: Any, time: str) -> None:
    with opened(sample(16_000) if trace is None else trace) as capture:
        calls, lines = Calls(capture), _TextLines(capture, time, Counter())
        rate = capture.ticks_per_second or 10**9
        seen, last, first = 0, {}, None
        for batch in walk(capture, Counter()):
            matched = calls.match(batch)
            column, places = lines.of(batch, matched)
            if first is None:
                first = int(batch.tsc[0]) * 10**9 // rate if time == "first" else 0
            inner = Counter(matched.inner["place"].tolist())
            wanted = []
            for place in range(len(batch)):
                thread, tsc = int(batch.thread[place]), int(batch.tsc[place])
                ns = tsc * 10**9 // rate
                at = f"{tsc:>16}" if time == "ticks" else seconds(ns - first)
                what = shown_event(lines, batch, place)
                if matched.ended[place]:
                    what += f" dur={duration(ns - int(matched.entered[place]) * 10**9 // rate)}"
                    what += f" unwound={inner[place]}" if inner[place] else ""
                elif batch.kind[place] in {1, 2}:
                    what += " unmatched"
                values = batch.argument_values[batch.argument_places == place].tolist()
                what += "".join(f" arg{n}={value}" for n, value in enumerate(values))
                depth = int(matched.depths[place])
                indent = "  " * depth if depth <= 40 else f"{'  ' * 40}[{depth}] "
                delta = f" {tsc - last[thread]:+}" if thread in last else ""
                last[thread] = tsc
                head = lines._head(thread << 16 | int(batch.cpu[place]))
                wanted.append(f"{int(batch.offset[place]):>8} {at} {head} {indent}{what}{delta}")
            assert column.data.tobytes().decode().splitlines() == wanted
            assert places.tolist() == list(range(len(batch)))
            seen += len(batch)
        assert seen > 1000 or trace is not None


def shown_event(lines: _TextLines, batch: Batch, place: int) -> str:
    """What an event is, without what is behind it."""
    kind, function = int(batch.kind[place]), int(batch.function[place])
    return lines._call(function << 3 | kind) if kind < 5 else lines._event(batch, place)


@cases("name", ["llvm-yaml", "text", "json"])
def test_an_event_alone_is_the_first_of_its_batch(name: str) -> None:
    """A call may be in the batch of arguments behind it, so no batch is made of what is before."""
    header = struct.pack("<HHIQ16x", 3, 0, 3, 1_000_000_000)
    entry = struct.pack("<HBBiQIIQ", 0, 0, 0, 7, 5, 1, 2, 0)
    with opened(header + entry) as capture:
        assert len(list(walk(capture, Counter()))) == 1
        text, _ = export(name, capture)
        assert "7" in text

"""Real traces: our records against what llvm-xray printed of them, and there and back again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from fx_xray import format as fx
from fx_xray import format as wire
from fx_xray.read.decoder import RecordDecoder
from fx_xray.rules import RULES
from fx_xray.write.encoder import RecordEncoder
from fxframework.errors import Severity
from fxframework.model.diagnostics import Diagnostics

from ...cases import cases

TRACES = Path(__file__).parents[2] / "conformance" / "xray"
FILES = {str(path.relative_to(TRACES)): path for path in sorted(TRACES.rglob("*.xray"))}


def expected(name: str, what: str) -> Path:
    """Where llvm-xray's output of a trace is, if it is."""
    path = FILES[name]
    return path.parent / "expected" / path.stem / what


def form_of(data: bytes) -> str:
    """The form, by the type in the header."""
    return "xray-basic" if data[2:3] == b"\0" else "xray"


def read(path: Path) -> tuple[str, list[Any], Diagnostics]:
    """The form, the records and the findings of a trace."""
    data = path.read_bytes()
    form = form_of(data)
    found = Diagnostics(RULES)
    return form, list(RecordDecoder(form, diagnostics=found).records(data)), found


def test_there_are_traces() -> None:
    assert len(FILES) > 40


@cases("name", FILES)
def test_every_trace_comes_back_through_json(name: str) -> None:
    form, records, _ = read(FILES[name])
    lines = [json.dumps(record.to_json()) for record in records]
    encoder = RecordEncoder(form)
    data = b"".join(encoder.encode(json.loads(line)) for line in lines) + encoder.close()
    assert data == FILES[name].read_bytes()
    assert sum(record.nbytes for record in records) == len(data)


# --- fdr-dump -------------------------------------------------------------------------------------

FUNCTIONS = {
    "enter": "Function Enter",
    "exit": "Function Exit",
    "tail_exit": "Function Tail Exit",
    "enter_arg": "Function Enter With Arg",
}


def dumped(shown: dict[str, Any], version: int) -> bytes | None:
    """A record's JSON as fdr-dump prints it; None for what it does not print."""
    data = bytes.fromhex(shown.get("data_hex", ""))
    match shown["record"]:
        case "buffer_extents":
            text = f"<Buffer: size = {shown['bytes']} bytes>"
        case "new_buffer":
            text = f"<Thread ID: {shown['thread']}>"
        case "wall_time":
            text = f"<Wall Time: seconds = {shown['seconds']}.{shown['micros']:06}>"
        case "pid":
            text = f"<PID: {shown['process']}>"
        case "new_cpu":
            text = f"<CPU: id = {shown['cpu']}, tsc = {shown['tsc']}>"
        case "tsc_wrap":
            text = f"<TSC Wrap: base = {shown['tsc']}>"
        case "function":
            kind = FUNCTIONS[shown["kind"]]
            text = f"<{kind}: #{shown['function_id']} delta = +{shown['delta']}>"
        case "call_argument":
            text = f"<Call Argument: data = {shown['value']} (hex = {shown['value']:#x})>"
        case "custom_event" if version < wire.EVENT_DELTA_VERSION:
            cpu = int.from_bytes(bytes.fromhex(shown.get("padding_hex", "0000"))[:2], "little")
            head = f"<Custom Event: tsc = {shown['tsc']}, cpu = {cpu}, size = {len(data)}, "
            return head.encode() + b"data = '" + data + b"'>"
        case "custom_event":
            head = f"<Custom Event: delta = +{shown['delta']}, size = {len(data)}, "
            return head.encode() + b"data = '" + data + b"'>"
        case "typed_event":
            head = (
                f"<Typed Event: delta = +{shown['delta']}, type = {shown['event_type']}, "
                f"size = {len(data)}, data = '"
            )
            return head.encode() + data + b"'"
        case "end_of_buffer":
            text = "<End of Buffer>"
        case _:
            return None
    return text.encode()


# Of basic mode fdr-dump reads the records as the flight data recorder's.
DUMPS = [
    name
    for name, path in FILES.items()
    if form_of(path.read_bytes()) == "xray" and expected(name, "fdr-dump.txt").exists()
]


@cases("name", DUMPS)
def test_records_agree_with_fdr_dump(name: str) -> None:
    _, records, found = read(FILES[name])
    version = records[0].version
    lines = [dumped(record.to_json(), version) for record in records]
    ours = b"".join(line + b"\n" for line in lines if line is not None)
    theirs = expected(name, "fdr-dump.txt").read_bytes()
    padded = any(record.record == "padding" for record in records)
    refused = any(found.rule(code).severity > Severity.WARNING for code in found.counts)
    if padded:
        # llvm-xray reads the space behind the end of a buffer of version 1 as records.
        assert theirs.startswith(ours)
        assert set(theirs[len(ours) :].splitlines()) <= {b"<Function Enter: #0 delta = +0>"}
    elif refused and ours != theirs:
        # It stops where we go on.
        assert ours.startswith(theirs)
    else:
        assert ours == theirs


def test_every_kind_of_record_is_in_the_dumps() -> None:
    kinds = {record.record for name in DUMPS for record in read(FILES[name])[1]}
    assert kinds >= {kind.record for kind in fx.Fdr.__subclasses__() if kind.layout.kind != (0,)}
    assert kinds >= {"function", "custom_event", "typed_event", "padding"}


# --- convert.yaml ---------------------------------------------------------------------------------

KINDS = {
    "enter": "function-enter",
    "exit": "function-exit",
    "tail_exit": "function-tail-exit",
    "enter_arg": "function-enter-arg",
}
NUMBER = re.compile(r"(type|func-id|cpu|thread|process|tsc): (\d+)")


def converted(path: Path) -> list[tuple[Any, ...]]:
    """llvm-xray's events: kind, function, arguments, type, CPU, thread, process, tsc."""
    events = []
    for line in path.read_bytes().decode(errors="replace").splitlines():
        if not line.startswith("  - {"):
            continue
        numbers = {key: int(value) for key, value in NUMBER.findall(line.split(", data:")[0])}
        kind = re.search(r"kind: ([a-z-]+)", line)
        args = re.search(r"args: \[ ([\d, ]*) \]", line)
        assert kind is not None
        event = kind[1].endswith("event")
        events.append(
            (
                kind[1],
                None if event else numbers["func-id"],
                [int(each) for each in args[1].split(",")] if args and not event else [],
                numbers["type"] if kind[1] == "typed-event" else None,
                numbers["cpu"],
                numbers["thread"],
                numbers.get("process", 0),
                numbers["tsc"],
            )
        )
    return events


def events_of(records: list[Any]) -> Iterator[list[Any]]:
    """The same of our records."""
    last: list[Any] | None = None
    for record in records:
        shown = record.to_json()
        kind = shown["record"]
        if kind == "call_argument":
            assert last is not None
            last[2].append(shown["value"])
            if last[0] == "function-enter":
                last[0] = "function-enter-arg"
            continue
        if last is not None:
            yield last
            last = None
        if kind in {"function", "custom_event", "typed_event"}:
            last = [
                KINDS[shown["kind"]] if kind == "function" else kind.replace("_", "-"),
                shown.get("function_id"),
                [],
                shown.get("event_type"),
                shown.get("cpu", 0),  # llvm-xray takes the padding for the CPU
                shown["thread"],
                shown["process"],
                shown["tsc"],
            ]
    if last is not None:
        yield last


YAMLS = [name for name in FILES if expected(name, "convert.yaml").exists()]


@cases("name", YAMLS)
def test_times_and_events_agree_with_convert(name: str) -> None:
    _, records, _ = read(FILES[name])
    theirs = converted(expected(name, "convert.yaml"))
    ours = [tuple(event) for event in events_of(records)]
    # Of events at one time, llvm-xray's order is that of a hash.
    assert sorted(map(repr, ours)) == sorted(map(repr, theirs))
    assert sorted(event[-1] for event in ours) == [event[-1] for event in theirs]
    threads = {event[5] for event in ours}
    for thread in threads:
        mine = sorted((event for event in ours if event[5] == thread), key=lambda event: event[-1])
        times = [event[-1] for event in mine]
        if len(set(times)) == len(times):
            assert mine == [event for event in theirs if event[5] == thread]


@cases("name", YAMLS)
def test_headers_agree_with_convert(name: str) -> None:
    text = expected(name, "convert.yaml").read_bytes().decode(errors="replace")
    theirs = yaml.safe_load(text.split("records:")[0].removeprefix("---"))["header"]
    _, (header, *_), _ = read(FILES[name])
    assert theirs == {
        "version": header.version,
        "type": header.type,
        "constant-tsc": header.constant_tsc,
        "nonstop-tsc": header.nonstop_tsc,
        "cycle-frequency": header.cycle_frequency,
    }


# --- What llvm-xray refuses -----------------------------------------------------------------------

DAMAGE = {
    "damaged/empty-0bytes.xray": (0, {"FXX0001"}),
    "damaged/extent-huge.xray": (88, {"FXX0103"}),
    "damaged/extent-minus8.xray": (88, {"FXX0108"}),
    "damaged/extent-zero.xray": (88, {"FXX0108"}),
    "damaged/header-only.xray": (1, {"FXX0004"}),
    "damaged/no-newcpuid.xray": (87, {"FXX0201", "FXX0203"}),
    "damaged/tiny-3bytes.xray": (1, {"FXX0001"}),
    "damaged/trailing-garbage.xray": (90, {"FXX0108", "FXX0102"}),
    "damaged/truncated-mid-metadata.xray": (4, {"FXX0102", "FXX0103", "FXX0202"}),
    "damaged/unknown-metadata-kind10-at-newbuffer.xray": (88, {"FXX0105", "FXX0201", "FXX0204"}),
    "damaged/version6.xray": (88, {"FXX0002"}),
    "fdr5-tailmigrate-corrupt-clang19.xray": (48, {"FXX0205"}),
    "fdr5-typed-shortextents-clang16.xray": (387, {"FXX0101", "FXX0102"}),
}
EMPTY = {name for name in FILES if "-empty-" in name}


@cases("name", FILES)
def test_findings_are_those_of_what_is_wrong(name: str) -> None:
    _, records, found = read(FILES[name])
    if name in EMPTY:
        assert (len(records), set(found.counts)) == (1, {"FXX0004"})
    elif name in DAMAGE:
        assert (len(records), set(found.counts)) == DAMAGE[name]
    else:
        assert not found.counts


def test_damaged_traces_keep_what_is_sound() -> None:
    sound = [
        record.to_json() for record in read(FILES["fdr5-single-clang19.xray"])[1]
        if record.record in {"function", "call_argument"}
    ]  # fmt: skip
    for name in ("extent-huge", "extent-minus8", "extent-zero", "version6", "trailing-garbage"):
        _, records, _ = read(FILES[f"damaged/{name}.xray"])
        kept = [record.to_json() for record in records]
        calls = [each for each in kept if each["record"] in {"function", "call_argument"}]
        assert calls[: len(sound)] == sound

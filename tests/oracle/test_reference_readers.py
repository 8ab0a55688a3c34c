"""What the reference readers of traces lose, of traces that show one thing each.

Perfetto's counters are held against the real one in ``test_predictions.py``; what it and the others
do without a word is held here against the tables of the vectors and of the format's page.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

import fxframework as fxf
from fx_trace.plugin import REFERENCES
from fxframework.host import default_host
from fxframework.model.prediction import Effect

from . import fxt

VECTORS = json.loads(
    (Path(__file__).parents[1] / "conformance" / "trace" / "records.json").read_text()
)
HEX = {vector["name"]: vector for vector in VECTORS}
READERS = tuple(name for name, _, _ in REFERENCES)
T = (11, 12)
RATE = fxt.initialization(1_000_000_000)
I5 = fxt.event("instant", 5, T, "i")
NOT_UTF8 = fxt.event("instant", 5, T, "zz").replace(b"zz", b"\xff\xfe")
BIG = fxt.large_blob("fidl:blob", "n", b"\xef" * (300 << 10))


def retyped(data: bytes, low: int, value: int, width: int = 4) -> bytes:
    """A record with a field of its header changed."""
    word = int.from_bytes(data[:8], "little") & ~(((1 << width) - 1) << low)
    return (word | value << low).to_bytes(8, "little") + data[8:]


def complete(ticks: int, until: int) -> bytes:
    return fxt.event("duration_complete", ticks, T, "c", word=until)


def counter(kind: str, value: object) -> bytes:
    return fxt.event("counter", 5, T, "c", [("a", kind, value)], word=1)


def flow(kind: str) -> bytes:
    return fxt.event(f"flow_{kind}", 5, T, "f", word=1)


def with_arg(kind: str, value: object) -> bytes:
    return fxt.event("instant", 5, T, "i", [("a", kind, value)])


def blob_arg(nbytes: int) -> bytes:
    """An argument that is a blob of four bytes and says so many."""
    data = bytearray(with_arg("blob", b"four"))
    at = data.index(struct.pack("<I", 4))
    data[at : at + 4] = struct.pack("<I", nbytes)
    return bytes(data)


def each(perfetto: str = "", trace2json: str = "", rust_fxt: str = "") -> dict[str, set[str]]:
    """The keys that each reader gives, separated by spaces."""
    return dict(
        zip(READERS, map(set, map(str.split, (perfetto, trace2json, rust_fxt))), strict=True)
    )


CASES: dict[str, tuple[bytes, dict[str, set[str]]]] = {
    "nothing": (I5, each()),
    "size zero": (retyped(I5, 4, 0, 12), each("size-zero", "size-zero", "size-zero cut")),
    "zero word": (fxt.words(0) + I5, each("size-zero", "", "size-zero")),
    "cut": (I5 + I5[:-8], each("cut", "cut", "cut")),
    "odd bytes": (I5 + b"odd", each("odd-bytes", "odd-bytes", "odd-bytes")),
    "short": (retyped(I5[:24], 4, 3, 12), each("short", "short", "short")),
    "string": (fxt.event("instant", 5, T, 77), each("string-ref", "string-ref", "string-ref")),
    "thread": (fxt.event("instant", 5, 9, "i"), each("thread-ref", "thread-ref", "thread-ref")),
    "index zero": (fxt.string(0, "text"), each("index-zero", "index-zero", "index-zero")),
    "thread zero": (fxt.thread(0, 1, 2), each("index-zero", "index-zero", "index-zero")),
    "rate zero": (fxt.initialization(0) + I5, each("time", "rate-zero", "rate")),
    "unknown record": (retyped(I5, 0, 14), each("record-type", "record-type", "record-type")),
    "userspace": (
        fxt.userspace_object(7, T, "object"),
        each("record-type", "record-type"),
    ),
    "log": (fxt.log(5, T, "message"), each("record-type")),
    "profiler": (
        fxt.profiler_backtrace(5, T, [1]),
        each("record-type", "record-type"),
    ),
    "profiler of a thread": (
        fxt.profiler_mmap(5, T, 1, 4096, 8),
        each("record-type", "record-type", "profiler"),
    ),
    "unknown event": (retyped(I5, 16, 13), each("event-type", "event-type", "event-type")),
    "unknown scheduling": (
        retyped(fxt.wakeup(5, 1, 12), 60, 7),
        each("event-type", "event-type", "event-type"),
    ),
    "unknown argument": (
        fxt.event("instant", 5, T, "i", [("", "bool", 1)]).replace(
            struct.pack("<Q", 9 | 1 << 4 | 1 << 32), struct.pack("<Q", 13 | 1 << 4 | 1 << 32)
        ),
        each("arg-value", "arg-type", "arg-type"),
    ),
    "other object": (fxt.kernel_object(4, 5, "channel"), each("object-type", "object-type")),
    "data blob": (fxt.blob("b", b"data"), each("blob-type", "blob-type")),
    "Perfetto blob": (fxt.blob("b", b"\x0a\x00", 3), each("packets", "blob-type")),
    "bad packet": (fxt.blob("b", b"\x0a\x01\xff", 3), each("packet", "blob-type")),
    "large blob": (fxt.large_blob("c", "n", b"x"), each("record-type", "large", "large-format")),
    "large metadata": (
        fxt.large_blob_with_metadata(5, T, "n", b"x"),
        each("record-type"),
    ),
    "larger blob": (BIG, {"trace2json": {"large-size"}, "rust-fxt": {"large-format"}}),
    "wide blob": (
        fxt.large_blob("c", "n", b"\xef" * 32768),
        {"perfetto": {"record-type", "large", "cut"}},
    ),
    "buffer full": (fxt.provider_event(1), each("buffer-full", "buffer-full")),
    "null": (with_arg("null", None), each("", "null")),
    "blob argument": (with_arg("blob", b"four"), each("arg-value", "blob-arg")),
    "whole blob argument": (with_arg("blob", b"fourfour"), each("arg-value")),
    "wide blob argument": (blob_arg(64), each("arg-value", "short", "blob-size")),
    "argument size": (
        fxt.event("instant", 5, T, "i", [("a", "bool", 1)], word=0).replace(
            struct.pack("<Q", 9 | 2 << 4 | 0x8001 << 16 | 1 << 32),
            struct.pack("<Q", 9 | 3 << 4 | 0x8001 << 16 | 1 << 32),
        ),
        each("", "", "arg-size"),
    ),
    "rates": (
        fxt.provider_info(1, "p") + fxt.initialization(7) + I5,
        each("", "rates", "rates"),
    ),
    "reused string": (fxt.string(1, "a") + fxt.string(1, "b"), each("", "reused")),
    "reused thread": (fxt.thread(1, 1, 2) + fxt.thread(1, 1, 3), each("", "reused")),
    "threads": (
        fxt.thread(1, 1, 2) + fxt.provider_info(1, "p") + fxt.thread(1, 1, 3),
        each("", "", "threads"),
    ),
    "names": (fxt.kernel_object(1, 5, "a") + fxt.kernel_object(1, 5, "longer"), each("", "names")),
    "UTF-8": (NOT_UTF8, each("", "utf8", "utf8")),
    "initialization": (
        fxt.initialization(1_000_000_000, 100, 5),
        each("base-tick", "", "initialization"),
    ),
    "scope": (fxt.event("instant", 5, T, "i", word=2), each("scope", "", "scope")),
    "unknown section": (fxt.provider_section(9) + I5, each("provider")),
    "time": (fxt.event("instant", 1 << 63, T, "i"), each("time", "", "rate")),
    "backwards": (complete(10, 5), each("backwards")),
    "not a number": (counter("string", "text"), each("not-a-number")),
    "weight": (
        fxt.context_switch(5, 1, 1, 2, 1, [("incoming_weight", "int64", 1)]),
        each("arg-type"),
    ),
    "process": (fxt.kernel_object(2, 5, "t", [("process", "uint64", 1)]), each("arg-type")),
    "name of an argument": (
        fxt.kernel_object(2, 5, "t", [(77, "koid", 1)]),
        each("thread-name-ref", "string-ref", "string-ref"),
    ),
    "CPU": (fxt.context_switch(5, 4096, 1, 2, 1), each("cpu")),
    "overlap": (complete(0, 10) + complete(5, 15), each("overlap")),
    "truncated": (
        complete(0, 10) + fxt.event("duration_begin", 5, T, "b") + complete(20, 21),
        each("truncated"),
    ),
    "end": (fxt.event("duration_end", 5, T, "e"), each("end-stray")),
    "async end": (fxt.event("async_end", 5, T, "e", word=1), each("end-stray")),
    "flow outside": (flow("begin"), each("flow-outside")),
    "flow twice": (I5 + flow("begin") * 2, each("flow-twice")),
    "flow step": (I5 + flow("step"), each("flow-step-stray")),
    "flow end": (I5 + flow("end"), each("flow-end-stray")),
    "flow arguments": (
        I5 + fxt.event("flow_begin", 5, T, "f", [("a", "bool", 1)], word=1),
        each("flow-args"),
    ),
    "too deep": (
        b"".join(fxt.event("duration_begin", ts, T, "b") for ts in range(513)),
        each("too-deep"),
    ),
    "signed": (with_arg("uint64", 1 << 63), each("signed")),
    "repeated": (
        fxt.event("instant", 5, T, "i", [("a", "bool", 1), ("a", "bool", 0)]),
        each("repeated"),
    ),
    "koid": (fxt.event("instant", 5, (1 << 63 | 5, 6), "i"), each("koid")),
}  # fmt: skip
"""Records behind a magic number and a tick rate, and the keys of what each reader loses."""
WHOLE = {"no magic": I5, "no rate": fxt.MAGIC + I5}
OF_WHOLE = {"no magic": each("no-magic", "", "no-magic"), "no rate": each("", "", "no-rate")}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", [*CASES, *WHOLE])
def test_case(name: str, reader: str) -> None:
    if name in WHOLE:
        trace, expected = WHOLE[name], OF_WHOLE[name]
    else:
        trace, expected = fxt.MAGIC + RATE + CASES[name][0], CASES[name][1]
    if reader in expected:
        found = fxf.predict(trace, reader, format="trace")
        assert {loss.quirk.key for loss in found.losses} == expected[reader]


@pytest.mark.parametrize("reader", READERS)
def test_every_quirk_has_a_case(reader: str) -> None:
    shown = [expected for _, expected in CASES.values()] + list(OF_WHOLE.values())
    keys = set().union(*(expected.get(reader, set()) for expected in shown))
    table = {one.name: one for one in default_host().reader("trace").references}[reader].quirks()
    assert keys == {quirk.key for quirk in table}


def of_vector(name: str, reader: str) -> set[str]:
    """What a reader loses of a vector, a tick rate's absence aside."""
    data = bytes.fromhex(HEX[name]["hex"])
    found = fxf.predict(
        data if HEX[name]["complete_file"] else fxt.MAGIC + data, reader, format="trace"
    )
    return {loss.quirk.key for loss in found.losses} - {"no-rate", "rate", "packets"}


OWN = [name for name in HEX if name.startswith("rust_")]
EXPECTED = {
    "rust_unknown_record_type_14_then_event": {"record-type"},
    "rust_zero_size_record_in_middle": {"size-zero"},
}


@pytest.mark.parametrize("name", OWN)
def test_the_crates_own_vectors(name: str) -> None:
    """Its tests read what it has vectors of, but for what they expect it to leave out."""
    keys = of_vector(name, "rust-fxt") - {"string-ref", "thread-ref"}
    assert keys == EXPECTED.get(name, set())


def test_vectors_on_which_readers_differ() -> None:
    assert of_vector("cpp_reader_profiler_sequence", "rust-fxt") >= {"profiler"}
    assert "profiler" not in of_vector("rust_profiler_mmap_process_only", "rust-fxt")
    assert of_vector("string_index_reregistered", "trace2json") == {"reused"}
    assert of_vector("string_index_reregistered", "rust-fxt") == set()
    assert of_vector("rust_zero_size_record_in_middle", "trace2json") == set()
    assert of_vector("rust_zero_size_record_in_middle", "perfetto") == {"size-zero"}
    assert of_vector("cpp_reader_kernel_object_non_utf8_name", "rust-fxt") == set()
    assert of_vector("jane_street_init_4_words", "rust-fxt") >= {"initialization"}


def test_an_unknown_reader_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(fxf.FxError, match="did you mean 'perfetto'") as error:
        fxf.predict(fxt.MAGIC, "perfeto")
    assert "rust-fxt" in error.value.remedy


@pytest.mark.parametrize("reader", READERS)
def test_all_of_a_damaged_trace_is_predicted(reader: str) -> None:
    """Any bytes at all give a result."""
    from .damaged import damaged_trace

    for number in range(60):
        found = fxf.predict(damaged_trace(number), reader, format="trace")
        assert found.records >= 0
        assert found.clean == all(loss.quirk.effect is Effect.UNPREDICTED for loss in found.losses)

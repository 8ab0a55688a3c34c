"""What Perfetto loses, of traces that show one thing each.

Its counters are compared with those of the real one in ``test_predictions.py``. What it does
without a message is compared here with the table of quirks.
"""

from __future__ import annotations

import struct

import pytest

import fxframework as fxf
from fxframework.host import default_host
from fxframework.model.prediction import Effect

from . import fxt

T = (11, 12)
RATE = fxt.initialization(1_000_000_000)
I5 = fxt.event("instant", 5, T, "i")
NOT_UTF8 = fxt.event("instant", 5, T, "zz").replace(b"zz", b"\xff\xfe")


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


CASES: dict[str, tuple[bytes, str]] = {
    "nothing": (I5, ""),
    "size zero": (retyped(I5, 4, 0, 12), "size-zero"),
    "zero word": (fxt.words(0) + I5, "size-zero"),
    "cut": (I5 + I5[:-8], "cut"),
    "odd bytes": (I5 + b"odd", "odd-bytes"),
    "short": (retyped(I5[:24], 4, 3, 12), "short"),
    "string": (fxt.event("instant", 5, T, 77), "string-ref"),
    "thread": (fxt.event("instant", 5, 9, "i"), "thread-ref"),
    "index zero": (fxt.string(0, "text"), "index-zero"),
    "thread zero": (fxt.thread(0, 1, 2), "index-zero"),
    "rate zero": (fxt.initialization(0) + I5, "time"),
    "unknown record": (retyped(I5, 0, 14), "record-type"),
    "userspace": (
        fxt.userspace_object(7, T, "object"),
        "record-type",
    ),
    "log": (fxt.log(5, T, "message"), "record-type"),
    "profiler": (
        fxt.profiler_backtrace(5, T, [1]),
        "record-type",
    ),
    "profiler of a thread": (
        fxt.profiler_mmap(5, T, 1, 4096, 8),
        "record-type",
    ),
    "unknown event": (retyped(I5, 16, 13), "event-type"),
    "unknown scheduling": (
        retyped(fxt.wakeup(5, 1, 12), 60, 7),
        "event-type",
    ),
    "unknown argument": (
        fxt.event("instant", 5, T, "i", [("", "bool", 1)]).replace(
            struct.pack("<Q", 9 | 1 << 4 | 1 << 32), struct.pack("<Q", 13 | 1 << 4 | 1 << 32)
        ),
        "arg-value",
    ),
    "other object": (fxt.kernel_object(4, 5, "channel"), "object-type"),
    "data blob": (fxt.blob("b", b"data"), "blob-type"),
    "Perfetto blob": (fxt.blob("b", b"\x0a\x00", 3), "packets"),
    "bad packet": (fxt.blob("b", b"\x0a\x01\xff", 3), "packet"),
    "large blob": (fxt.large_blob("c", "n", b"x"), "record-type"),
    "large metadata": (
        fxt.large_blob_with_metadata(5, T, "n", b"x"),
        "record-type",
    ),
    "wide blob": (
        fxt.large_blob("c", "n", b"\xef" * 32768),
        "record-type large cut",
    ),
    "buffer full": (fxt.provider_event(1), "buffer-full"),
    "null": (with_arg("null", None), ""),
    "blob argument": (with_arg("blob", b"four"), "arg-value"),
    "whole blob argument": (with_arg("blob", b"fourfour"), "arg-value"),
    "wide blob argument": (blob_arg(64), "arg-value"),
    "argument size": (
        fxt.event("instant", 5, T, "i", [("a", "bool", 1)], word=0).replace(
            struct.pack("<Q", 9 | 2 << 4 | 0x8001 << 16 | 1 << 32),
            struct.pack("<Q", 9 | 3 << 4 | 0x8001 << 16 | 1 << 32),
        ),
        "",
    ),
    "rates": (
        fxt.provider_info(1, "p") + fxt.initialization(7) + I5,
        "",
    ),
    "reused string": (fxt.string(1, "a") + fxt.string(1, "b"), ""),
    "reused thread": (fxt.thread(1, 1, 2) + fxt.thread(1, 1, 3), ""),
    "threads": (
        fxt.thread(1, 1, 2) + fxt.provider_info(1, "p") + fxt.thread(1, 1, 3),
        "",
    ),
    "names": (fxt.kernel_object(1, 5, "a") + fxt.kernel_object(1, 5, "longer"), ""),
    "UTF-8": (NOT_UTF8, ""),
    "initialization": (
        fxt.initialization(1_000_000_000, 100, 5),
        "base-tick",
    ),
    "scope": (fxt.event("instant", 5, T, "i", word=2), "scope"),
    "unknown section": (fxt.provider_section(9) + I5, "provider"),
    "time": (fxt.event("instant", 1 << 63, T, "i"), "time"),
    "backwards": (complete(10, 5), "backwards"),
    "not a number": (counter("string", "text"), "not-a-number"),
    "weight": (
        fxt.context_switch(5, 1, 1, 2, 1, [("incoming_weight", "int64", 1)]),
        "arg-type",
    ),
    "process": (fxt.kernel_object(2, 5, "t", [("process", "uint64", 1)]), "arg-type"),
    "name of an argument": (
        fxt.kernel_object(2, 5, "t", [(77, "koid", 1)]),
        "thread-name-ref",
    ),
    "CPU": (fxt.context_switch(5, 4096, 1, 2, 1), "cpu"),
    "overlap": (complete(0, 10) + complete(5, 15), "overlap"),
    "truncated": (
        complete(0, 10) + fxt.event("duration_begin", 5, T, "b") + complete(20, 21),
        "truncated",
    ),
    "end": (fxt.event("duration_end", 5, T, "e"), "end-stray"),
    "async end": (fxt.event("async_end", 5, T, "e", word=1), "end-stray"),
    "flow outside": (flow("begin"), "flow-outside"),
    "flow twice": (I5 + flow("begin") * 2, "flow-twice"),
    "flow step": (I5 + flow("step"), "flow-step-stray"),
    "flow end": (I5 + flow("end"), "flow-end-stray"),
    "flow arguments": (
        I5 + fxt.event("flow_begin", 5, T, "f", [("a", "bool", 1)], word=1),
        "flow-args",
    ),
    "too deep": (
        b"".join(fxt.event("duration_begin", ts, T, "b") for ts in range(513)),
        "too-deep",
    ),
    "signed": (with_arg("uint64", 1 << 63), "signed"),
    "repeated": (
        fxt.event("instant", 5, T, "i", [("a", "bool", 1), ("a", "bool", 0)]),
        "repeated",
    ),
    "koid": (fxt.event("instant", 5, (1 << 63 | 5, 6), "i"), "koid"),
}  # fmt: skip
"""Records behind a magic number and a tick rate, and the keys of what Perfetto loses."""
WHOLE = {"no magic": I5, "no rate": fxt.MAGIC + I5}
OF_WHOLE = {"no magic": "no-magic", "no rate": ""}


@pytest.mark.parametrize("name", [*CASES, *WHOLE])
def test_case(name: str) -> None:
    if name in WHOLE:
        trace, expected = WHOLE[name], OF_WHOLE[name]
    else:
        trace, expected = fxt.MAGIC + RATE + CASES[name][0], CASES[name][1]
    found = fxf.predict(trace, "perfetto", format="trace")
    assert {loss.quirk.key for loss in found.losses} == set(expected.split())


def test_every_quirk_has_a_case() -> None:
    shown = [expected for _, expected in CASES.values()] + list(OF_WHOLE.values())
    keys = {key for expected in shown for key in expected.split()}
    (reference,) = default_host().reader("trace").references
    assert keys == {quirk.key for quirk in reference.quirks()}


def test_an_unknown_reader_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(fxf.FxError, match="did you mean 'perfetto'") as error:
        fxf.predict(fxt.MAGIC, "perfeto")
    assert "perfetto" in error.value.remedy


@pytest.mark.parametrize("name", ["trace2json", "rust-fxt"])
def test_a_reader_that_is_not_modelled_is_refused_with_what_says_what_it_does(name: str) -> None:
    with pytest.raises(fxf.FxError) as error:
        fxf.predict(fxt.MAGIC, name)
    assert "fxf explain CODE" in error.value.remedy


def test_all_of_a_damaged_trace_is_predicted() -> None:
    """Any bytes at all give a result."""
    from .damaged import damaged_trace

    for number in range(60):
        found = fxf.predict(damaged_trace(number), "perfetto", format="trace")
        assert found.records >= 0
        assert found.clean == all(loss.quirk.effect is Effect.UNPREDICTED for loss in found.losses)

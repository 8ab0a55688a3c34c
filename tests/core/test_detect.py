"""Detection: the surest reader wins, suffixes break ties, what is left is told."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import attrs
import pytest

from fxframework import containment
from fxframework.detect import choose, rank
from fxframework.errors import ExitCode, NoReaderError
from fxframework.registry import Confidence, Probe, Reader

from ..cases import cases


def reader(format: str, confidence: Any, *suffixes: str) -> Reader:
    def sniff(probe: Probe) -> Confidence:
        if isinstance(confidence, Exception):
            raise confidence
        return confidence  # type: ignore[no-any-return]

    return Reader(format=format, title=format, suffixes=suffixes, sniff=sniff, open=lambda *_: None)  # type: ignore[arg-type, return-value]


def probe(name: str = "a.bin", data: bytes = b"data") -> Probe:
    return Probe(head=data, size=len(data), name=name)


def chosen(name: str, *readers: Reader, data: bytes = b"data") -> str:
    seen = probe(name, data)
    return choose(rank(readers, seen), seen).format


NONE, POSSIBLE, LIKELY, CERTAIN = Confidence


def test_the_surest_reader_wins_whatever_the_suffix() -> None:
    assert chosen("x.a", reader("a", LIKELY, ".a"), reader("b", CERTAIN, ".b")) == "b"


def test_the_suffix_breaks_a_tie() -> None:
    assert chosen("x.B", reader("a", LIKELY, ".a"), reader("b", LIKELY, ".b")) == "b"


def test_a_tie_that_no_suffix_breaks_names_the_candidates() -> None:
    readers = [reader(name, LIKELY, ".x") for name in ("xray", "xray-basic")]
    for name in ("capture", "capture.x"):
        with pytest.raises(NoReaderError, match="any of xray, xray-basic") as caught:
            chosen(name, *readers, reader("poor", POSSIBLE, ".x"))
        assert caught.value.exit_code == ExitCode.NO_READER
        assert caught.value.path == name
        assert "-f xray" in caught.value.remedy


def test_what_nobody_claims_is_refused_with_what_its_name_says() -> None:
    with pytest.raises(NoReaderError, match="although its suffix is that of a") as caught:
        chosen("x.a", reader("a", NONE, ".a"), reader("b", NONE, ".b"))
    assert "-f a" in caught.value.remedy
    with pytest.raises(NoReaderError, match="no reader has its suffix"):
        chosen("x.c", reader("a", NONE, ".a"))
    with pytest.raises(NoReaderError):
        chosen("x.c")


def test_an_empty_input_goes_by_its_suffix() -> None:
    some = reader("a", NONE, ".a"), reader("b", NONE, ".b"), reader("c", NONE, ".b")
    assert chosen("x.a", *some, data=b"") == "a"
    with pytest.raises(NoReaderError, match="any of b, c"):
        chosen("x.b", *some, data=b"")
    with pytest.raises(NoReaderError, match="the input is empty"):
        chosen("x", *some, data=b"")


@cases("result", [RuntimeError("sneeze"), "certain", None, 17])
def test_a_sniffer_that_fails_counts_as_none_and_is_listed(result: Any) -> None:
    bad = reader("bad", result, ".bad")
    ranking = rank([bad, reader("good", POSSIBLE)], probe())
    assert [found.reader.format for found in ranking.candidates] == ["good"]
    (failure,) = ranking.failures
    assert failure.reader is bad


def test_a_sniffer_that_hangs_counts_as_none_and_the_others_are_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(containment, "PATIENCE", 0.05)
    goes_on = threading.Event()
    late = attrs.evolve(reader("late", NONE), sniff=lambda _: goes_on.wait() and POSSIBLE)
    ranking = rank([reader("first", POSSIBLE), late, reader("good", LIKELY)], probe())
    goes_on.set()
    assert [found.reader.format for found in ranking.candidates] == ["good", "first"]
    (failure,) = ranking.failures
    assert failure.reader is late
    assert str(failure.error) == "it did not return within 0.05 s"


def test_candidates_are_ranked() -> None:
    readers = [
        reader("d", POSSIBLE),
        reader("c", LIKELY),
        reader("b", LIKELY, ".bin"),
        reader("a", CERTAIN),
        reader("n", NONE, ".bin"),
    ]
    ranking = rank(readers, probe())
    assert [found.reader.format for found in ranking.candidates] == ["a", "b", "c", "d"]
    assert [found.format for found in ranking.named] == ["b", "n"]


@cases(
    ("name", "fits"),
    [("a.fxt", True), ("A.FXT", True), ("/x.fxt/a", False), ("fxt", False), ("a.fxt.gz", False)],
)
def test_suffixes_are_those_of_the_name_in_any_case(name: str, fits: bool) -> None:
    assert probe(name).has_suffix((".fxt",)) is fits


def test_other_files_are_refused_without_declared_records() -> None:
    """A log is opened without the declarations of traces."""
    code = """
import sys
from fxframework.host import default_host
from fxframework.registry import Probe
head = bytes(range(7, 255)) * 8
for reader in default_host().readers.values():
    reader.sniff(Probe(head=head, size=len(head), name="other.bin"))
loaded = {name.rpartition(".")[2] for name in sys.modules if name.startswith("fx_")}
print(sorted(loaded & {"format", "records", "indexed"}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

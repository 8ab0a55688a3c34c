"""Whose mistake an error is said to be, and where."""

from __future__ import annotations

import errno
import io
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import toy

from fxframework import hookimpl
from fxframework.errors import (
    BadCallError,
    FxError,
    MissingExtraError,
    OutputError,
    PluginError,
    Rule,
    Severity,
    UnreadableError,
    WriteRefusedError,
    install_line,
)
from fxframework.host import Host
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.model.capture import Capture, OpenRequest
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.schema import STANDARD_TABLES
from fxframework.model.strings import StringPool
from fxframework.model.table import Table
from fxframework.registry import Confidence, Reader, Writer, lazy, lazy_type
from fxframework.testing.cli import run_cli

from ..cases import cases

INSTANTS = STANDARD_TABLES["instants"]


# --- What is passed to us -----------------------------------------------------------------------


def unknown_code() -> None:
    Diagnostics({}).add("NOPE0001")


def bad_column() -> None:
    Table.of(INSTANTS, StringPool(), ts=["soon"])


def text_of_numbers() -> None:
    Table.of(STANDARD_TABLES["logs"], StringPool(), message=[1, 2])


def too_large() -> None:
    Table.of(INSTANTS, StringPool(), ts=[1 << 70])


def no_such_column() -> None:
    Table.of(INSTANTS, StringPool(), tz=[1])


def uneven() -> None:
    Table.of(INSTANTS, StringPool(), ts=[1], id=[1, 2])


def columns_missing() -> None:
    Table(INSTANTS, 0, {}, StringPool())


@cases(
    "call",
    [
        unknown_code,
        bad_column,
        text_of_numbers,
        too_large,
        no_such_column,
        uneven,
        columns_missing,
    ],
)
def test_a_bad_call_names_its_place(call: Callable[[], None]) -> None:
    with pytest.raises(BadCallError) as caught:
        call()
    assert caught.value.code == "FXF0009"
    line = call.__code__.co_firstlineno + 1
    assert f"(called in {call.__module__}, line {line})" in str(caught.value)


class Unfinished(Capture):
    """A reader that lacks what it must define."""

    format = "unfinished"


@cases(
    ("target", "says"),
    [
        ("nowhere.at_all:Reader", "no module nowhere"),
        ("toy:nothing", "toy has no 'nothing'"),
        (f"{__name__}:Unfinished", "does not define _table, records"),
    ],
)
def test_a_descriptor_without_its_code(
    target: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, __name__, types.SimpleNamespace(Unfinished=Unfinished))
    with pytest.raises(PluginError, match=says) as caught:
        lazy(target)(Source.open(b""), OpenRequest())
    assert target in str(caught.value)
    if "Unfinished" not in target:
        with pytest.raises(PluginError, match=says):
            lazy_type(target)()


# --- What plugins raise -------------------------------------------------------------------------


class BrokenWriter:
    """Raises what no writer should."""

    def __init__(self, sink: Sink, options: Any, diagnostics: Any) -> None:
        pass

    def write(self, record: Any) -> None:
        raise KeyError("the pen")

    def close(self) -> None:
        pass


def test_a_writer_that_raises_is_blamed_not_the_records(tmp_path: Path) -> None:
    host = Host(discover=False)
    module = types.ModuleType("scribe_plugin")
    sniff = lambda probe: Confidence.NONE  # noqa: E731
    reader = Reader(format="scribe", title="", suffixes=(".scribe",), sniff=sniff, open=toy_open)
    writer = Writer(format="scribe", title="", suffixes=(".scribe",), open=BrokenWriter)
    module.fx_readers = hookimpl(lambda: [reader])  # type: ignore[attr-defined]
    module.fx_writers = hookimpl(lambda: [writer])  # type: ignore[attr-defined]
    host.register(module, name="scribe", distribution="fx-scribe")
    import fxframework.exporters.plugin

    host.register(fxframework.exporters.plugin, name="exporters", distribution="fxframework")
    header = b'{"fxframework": "records", "format": "scribe", "version": 1}\n'
    path = tmp_path / "a.jsonl"
    path.write_bytes(header + b'{"record": "letter"}\n')
    with pytest.raises(PluginError, match="KeyError: 'the pen'") as caught:
        host.open(path, format="records")
    assert (caught.value.path, caught.value.offset) == (str(path), len(header))
    assert "fx-scribe" in caught.value.remedy
    result = run_cli("info", path, host=host)
    assert result.exit_code == 1
    assert "error[FXF0009]" in result.stderr


def toy_open(source: Source, request: OpenRequest) -> Capture:
    return toy.ToyCapture(source, request)


# --- What the machine refuses -------------------------------------------------------------------


class FullDisk(io.RawIOBase):
    """A file without room."""

    def write(self, data: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_names_the_file() -> None:
    sink = Sink(FullDisk(), name="out.fxt")  # type: ignore[arg-type]
    with pytest.raises(OutputError) as caught:
        sink.write(b"x")
    assert (caught.value.code, caught.value.path) == ("FXF0010", "out.fxt")
    assert str(caught.value) == "out.fxt: cannot write: No space left on device"


def test_a_disk_that_is_full_at_the_end_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.bin"
    path.write_bytes(b"old")
    sink = Sink.open(path, force=True)

    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    sink.write(b"new")
    monkeypatch.setattr(sink._file, "flush", full)
    with pytest.raises(OutputError, match="No space left"):
        sink.commit()
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["out.bin"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_dev_full(tmp_path: Path) -> None:
    sample = tmp_path / "a.fxt"
    host = Host()
    reader = host.reader("trace")
    assert reader.sample is not None
    sample.write_bytes(reader.sample(100_000))
    result = run_cli("convert", sample, "/dev/full", "-t", "records", "--force", host=host)
    assert result.exit_code == 1
    assert "error[FXF0010]" in result.stderr
    assert "/dev/full" in result.stderr


def test_closed_standard_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    monkeypatch.setattr("sys.stdout", None)
    with pytest.raises(UnreadableError, match="standard input is closed"):
        Source.open("-")
    with pytest.raises(WriteRefusedError, match="standard output is closed"):
        Sink.open("-")


# --- What is not installed ----------------------------------------------------------------------


def test_the_install_line_is_that_of_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    needs = ["numpy", 'a>=1; extra == "one"', "fxframework[one]; extra == 'all'", "b; extra=='all'"]
    monkeypatch.setattr(metadata, "requires", lambda name: needs)
    assert install_line("one", "a").endswith(" -m pip install 'a>=1'")
    assert install_line("all", "a").endswith(" -m pip install 'a>=1' b")
    assert install_line("other", "c").endswith(" -m pip install c")
    error = MissingExtraError("a", "one", purpose="counting")
    assert str(error).startswith("counting needs a, which is not installed; to install it: ")
    assert str(error).endswith("-m pip install 'a>=1'")


def test_blame_is_of_third_parties_only() -> None:
    host = Host()
    with pytest.raises(FxError) as caught:
        raise FxError("x")
    assert host.blame(caught.value) is None


def test_rules_are_catalogued() -> None:
    codes = {rule.code: rule for rule, _ in Host().rules()}
    for code in ("FXF0009", "FXF0010", "FXF0105"):
        assert isinstance(codes[code], Rule)
    assert codes["FXF0105"].severity is Severity.WARNING

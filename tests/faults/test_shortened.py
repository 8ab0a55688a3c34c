"""A capture that another program shortens while it is read: an error that names it, exit 1."""

from __future__ import annotations

import gzip
import mmap
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import fxframework as fxf
from fx_inspect.read.snapshot import MappedFile
from fxframework.errors import ExitCode, UnreadableError
from fxframework.host import Host
from fxframework.io.faults import forget, watch
from fxframework.io.source import Source
from fxframework.model.capture import Capture
from fxframework.testing.cli import run_cli

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows refuses to shorten mapped files")

FORMATS = ("trace", "log", "inspect", "xray")
PAGE = mmap.PAGESIZE
LEFT: dict[str, Callable[[int], int]] = {
    "empty": lambda _: 0,
    "half": lambda size: size // 2 + 1,
    "the last page": lambda size: (size - 1) // PAGE * PAGE + 1,
}
"""How many bytes of a file are left."""
COMMANDS = {
    "info": ("info", "IN"),
    "records": ("cat", "--records", "IN"),
    "text": ("cat", "IN"),
    "verify": ("verify", "IN"),
    "rewrite": ("convert", "IN", "OUT", "-t", "FORMAT"),
    "csv": ("convert", "IN", "OUT", "-t", "csv"),
    "html": ("convert", "IN", "OUT", "-t", "html"),
    "jsonl": ("convert", "IN", "OUT", "-t", "records"),
    "diff": ("diff", "IN", "IN"),
    "salvage": ("salvage", "IN", "OUT"),
    "record": ("record", "IN", "--out", "OUT"),
}


@pytest.fixture(scope="module")
def samples() -> dict[str, bytes]:
    """A capture of each format, several pages long."""
    made = {}
    for format in FORMATS:
        sample = Host().reader(format).sample
        assert sample is not None
        made[format] = sample(30 * PAGE)[: 25 * PAGE + 8]
    return made


@pytest.fixture(scope="module")
def have_run() -> set[tuple[str, str]]:
    """The commands, with formats, that have imported their modules: the guard may interrupt them.

    An interrupt within an import would leave its file open, of which Python warns.
    """
    return set()


class Shortener:
    """A plugin that shortens each capture once it is open."""

    def __init__(self, left: str) -> None:
        self.left = LEFT[left]

    @fxf.hookimpl
    def fx_capture_opened(self, capture: Capture) -> None:
        path = capture.source.path
        assert path is not None
        os.truncate(path, self.left(path.stat().st_size))


class SlowShortener(Shortener):
    """A plugin that takes so long behind a lost page that the guard notices it first."""

    @fxf.hookimpl
    def fx_capture_opened(self, capture: Capture) -> None:
        super().fx_capture_opened(capture)
        assert capture.source.data[-1:].tobytes() == bytes(1)
        for _ in range(1000):
            time.sleep(0.01)  # the guard interrupts it


def test_a_command_that_is_interrupted_for_it_names_the_file(
    samples: dict[str, bytes], tmp_path: Path
) -> None:
    path = tmp_path / "a.trace"
    path.write_bytes(samples["trace"])
    host = Host()
    host.register(SlowShortener("half"), name="shortener")
    begin = time.monotonic()
    result = run_cli("info", path, "-f", "trace", host=host)
    assert result.exit_code == ExitCode.FAILED
    assert "shortened while it was read" in result.stderr
    assert time.monotonic() - begin < 9


@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_names_the_file_and_fails(
    command: str,
    format: str,
    left: str,
    samples: dict[str, bytes],
    have_run: set[tuple[str, str]],
    tmp_path: Path,
) -> None:
    path, out = tmp_path / f"a.{format}", tmp_path / "out"
    path.write_bytes(samples[format])
    host = Host()
    given = {"IN": str(path), "OUT": str(out), "FORMAT": format}
    arguments = [*(given.get(w, w) for w in COMMANDS[command]), "-f", format]
    if (command, format) not in have_run:
        run_cli(*arguments, host=host)
        out.unlink(missing_ok=True)
        have_run.add((command, format))
    host.register(Shortener(left), name="shortener")
    result = run_cli(*arguments, host=host)
    assert (result.exit_code, "shortened while it was read" in result.stderr, f"--> {path}" in
            result.stderr) == (ExitCode.FAILED, True, True), result.stderr  # fmt: skip
    assert not out.exists()


def test_a_batch_reports_the_capture_and_goes_on(
    samples: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    for name in "ab":
        (tmp_path / f"{name}.fxt").write_bytes(samples["trace"])
    host = Host()
    monkeypatch.setattr("fxframework.host.default_host", lambda: host)

    class OnlyA(Shortener):
        @fxf.hookimpl
        def fx_capture_opened(self, capture: Capture) -> None:
            if capture.name.endswith("a.fxt"):
                os.truncate(capture.name, 100)

    host.register(OnlyA("half"), name="shortener")
    report = fxf.batch([tmp_path / "a.fxt", tmp_path / "b.fxt"], tmp_path / "out", jobs=1)
    first, second = report.entries
    assert first.error is not None
    assert "shortened while it was read" in first.error.message
    assert second.error is None


VERBS: dict[str, Callable[[Path, Path], object]] = {
    "verify": lambda path, _: fxf.verify(path),
    "convert": lambda path, out: fxf.convert(path, out, to="html"),
    "diff": lambda path, _: fxf.diff(path, path),
    "salvage": fxf.salvage,
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_of_python_raises(
    verb: str, samples: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host()
    host.register(Shortener("half"), name="shortener")
    monkeypatch.setattr("fxframework.verbs.default_host", lambda: host)
    monkeypatch.setattr("fxframework.host.default_host", lambda: host)
    path, out = tmp_path / "a.fxt", tmp_path / "out.fxt"
    path.write_bytes(samples["trace"])
    with pytest.raises(UnreadableError, match=r"a\.fxt: it was shortened while it was read"):
        VERBS[verb](path, out)
    assert not out.exists()


def test_an_output_of_a_shortened_file_is_not_sent(
    samples: dict[str, bytes], tmp_path: Path
) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    path = tmp_path / "a.fxt"
    path.write_bytes(samples["trace"])
    capture = fxf.open(path)
    sink = fxf.Host().sink("memory://short/out.fxt")
    sink.budget = capture.request.budget
    sink.write(b"some")
    os.truncate(path, 100)
    with pytest.raises(UnreadableError, match="shortened while it was read"):
        sink.commit()
    assert not memory.exists("/short/out.fxt")


def test_tables_and_records_raise(samples: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "a.fxt"
    takes = (
        lambda capture: capture.table("slices"),
        lambda capture: list(capture.batches("slices")),
        lambda capture: list(capture.checked_records()),
    )
    for take in takes:
        path.write_bytes(samples["trace"])
        capture = fxf.open(path)
        os.truncate(path, 100)
        with pytest.raises(UnreadableError, match="100 of 102,408 bytes are left"):
            take(capture)
        with pytest.raises(UnreadableError), capture:
            pass  # as the end of a file that could not be written does


def test_a_file_that_was_rewritten_meanwhile(tmp_path: Path) -> None:
    """It has its size again, but pages that could not be read between stay lost."""
    path = tmp_path / "a.bin"
    path.write_bytes(b"x" * (4 * PAGE))
    source = Source.open(path)
    os.truncate(path, 0)
    assert source.read(2 * PAGE, 5) == bytes(5)
    path.write_bytes(b"x" * (4 * PAGE))
    with pytest.raises(UnreadableError, match="it was rewritten meanwhile, or its disk failed"):
        source.check()
    whole = Source.open(path)
    assert whole.read(2 * PAGE, 5) == b"x" * 5
    whole.check()


def test_a_compressed_file_is_not_taken_for_a_damaged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(random.Random(4).randbytes(4 * PAGE)))
    kept = Source.unpack

    def unpack(raw: Source, *given: object) -> Source:
        os.truncate(path, 3)
        return kept(raw, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Source, "unpack", unpack)
    with pytest.raises(UnreadableError, match="shortened"):
        Source.open(path)


def test_the_lost_part_of_a_live_file_is_zeros(tmp_path: Path) -> None:
    path = tmp_path / "a.inspect"
    path.write_bytes(b"x" * (2 * PAGE))
    with MappedFile(path) as memory:
        os.truncate(path, 1)
        assert memory.read(PAGE, 2) == bytes(2)
        assert memory.refresh() == 1


def test_more_files_than_can_be_watched_are_copied(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"x" * 10)
    slots = list(iter(lambda: watch(8, 8), -1))
    try:
        copied = Source.open(path)
    finally:
        for slot in slots:
            forget(slot)
    mapped = Source.open(path)
    os.truncate(path, 0)
    assert copied.read(0, 10) == b"x" * 10
    copied.check()
    with pytest.raises(UnreadableError):
        mapped.check()


SENT = "import os, signal, sys, fxframework as fxf; fxf.open(sys.argv[1]); "
ENDS = {
    "sent": SENT + "os.kill(os.getpid(), signal.SIGBUS)",
    "sent, with a handler before": "import faulthandler; faulthandler.enable(); "
    + SENT + "os.kill(os.getpid(), signal.SIGBUS)",
    "of another mapping": SENT + "import mmap; f = open(sys.argv[1], 'r+b'); "
    "m = mmap.mmap(f.fileno(), 0); f.truncate(0); m[0]",
}  # fmt: skip


@pytest.mark.parametrize("how", ENDS)
def test_other_bus_errors_end_the_process(
    how: str, samples: dict[str, bytes], tmp_path: Path
) -> None:
    path = tmp_path / "a.fxt"
    path.write_bytes(samples["trace"])
    done = subprocess.run(
        [sys.executable, "-c", ENDS[how], str(path)], check=False, capture_output=True, timeout=60
    )
    assert done.returncode == -signal.SIGBUS
    assert (b"Fatal Python error: Bus error" in done.stderr) == ("handler" in how)

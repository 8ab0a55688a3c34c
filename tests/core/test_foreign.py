"""Files that no reader reads are named, and what to do with them; folders too."""

from __future__ import annotations

import gzip
import io
import json
import shlex
import sqlite3
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import fxframework as fxf
from fxframework.errors import ExitCode
from fxframework.foreign import foreign
from fxframework.host import default_host
from fxframework.registry import HEAD, Probe
from fxframework.testing.cli import run_cli

from ..cases import cases

ROOT = Path(__file__).resolve().parents[2]
BOOT = ROOT / "examples" / "scenarios" / "boot.golden" / "boot.fxt"
LOGS = ROOT / "examples" / "scenarios" / "logs.golden" / "logs.fxlog"


def zipped(_: Path) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.write(BOOT, "boot.fxt")
    return out.getvalue()


def tarred(_: Path) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.add(BOOT, "boot.fxt")
    return out.getvalue()


def database(folder: Path) -> bytes:
    path = folder / "made.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("create table t (a)")
    connection.close()
    return path.read_bytes()


def made(source: Path, suffix: str) -> Callable[[Path], bytes]:
    """What fxf itself makes of a capture."""

    def make(folder: Path) -> bytes:
        fxf.convert(source, folder / f"made{suffix}")
        return (folder / f"made{suffix}").read_bytes()

    return make


CASES: dict[str, tuple[Callable[[Path], bytes], str, str]] = {
    "zip": (zipped, "a ZIP archive", "unzip"),
    "tar": (tarred, "a tar archive", "tar xf"),
    "tar.gz": (lambda p: gzip.compress(tarred(p)), "a tar archive that is compressed", "tar xf"),
    "text.gz": (lambda _: gzip.compress(b"some\nlines\n"), "text that is compressed", ""),
    "text": (lambda _: "Grüße\n\tan alle\n".encode(), "text", ""),
    "program": (lambda _: Path(sys.executable).resolve().read_bytes()[: 1 << 17], "an ELF", "-m"),
    "sqlite": (database, "a SQLite database", "sqlite3"),
    "chrome": (
        lambda _: b'{"events": [{"name": "a", "ph": "X", "ts": 1}]}',
        "a trace as Chrome JSON", "-f chrome-json",
    ),
    "records": (
        lambda folder: made(BOOT, ".jsonl")(folder).partition(b"\n")[2],
        "records without the line", "-f records -o format=trace",
    ),
    "perfetto": (made(BOOT, ".pftrace"), "a Perfetto trace", "ui.perfetto.dev"),
    "speedscope": (made(BOOT, ".speedscope.json"), "a speedscope profile", "speedscope.app"),
    "html": (made(BOOT, ".html"), "an HTML page", "browser"),
    "svg": (made(BOOT, ".svg"), "an SVG picture", "browser"),
    "otlp": (made(LOGS, ".otlp.json"), "JSON of OpenTelemetry", ""),
    "logs-data": (made(LOGS, ".json"), "JSON of ffx or iquery", "the log"),
    "ftrace": (lambda _: b"# tracer: nop\n#\n", "Linux ftrace text", "examples/plugins/ftrace"),
    "json": (lambda _: json.dumps({"a": [1, 2]}).encode(), "JSON", ""),
    "scenario": (
        lambda _: (ROOT / "examples" / "scenarios" / "boot.toml").read_bytes(),
        "a scenario", "fxf replay",
    ),
    "zeros": (lambda _: bytes(4096), "only zero bytes", ""),
}  # fmt: skip


@cases("suffix", ["", ".fxt"])
@cases("case", CASES)
def test_an_unknown_file_is_named_with_what_to_do(case: str, suffix: str, tmp_path: Path) -> None:
    make, what, remedy = CASES[case]
    path = tmp_path / f"unknown{suffix}"
    path.write_bytes(make(tmp_path))
    done = run_cli(path)
    if suffix and done.exit_code == ExitCode.FINDINGS:  # its reader claims it, with its suffix
        assert "data was lost" in done.stderr
        return
    assert done.exit_code == ExitCode.NO_READER, done.stderr
    assert f"no reader recognizes {what}" in done.stderr
    assert remedy in done.stderr
    assert ("to read it anyway: -f trace" in done.stderr) == bool(suffix)


def test_what_is_not_known_is_not_guessed() -> None:
    unknown = bytes(range(256)) * 20
    assert foreign(Probe(head=unknown, size=len(unknown), name="x")) is None
    assert "no reader recognizes these bytes" in run_cli("-", stdin=unknown).stderr
    assert "the input is empty" in run_cli("-").stderr


SAMPLES = {name: reader.sample for name, reader in default_host().readers.items() if reader.sample}


@cases("format", SAMPLES)
def test_a_sample_of_a_format_is_not_foreign_for_its_reader(format: str) -> None:
    """What a reader recognizes is never called by another name: the readers come first."""
    data = SAMPLES[format](20_000)
    with fxf.open(data) as capture:
        assert capture.format == format or foreign(Probe(head=data[:HEAD], size=0, name="")) is None


# --- folders -------------------------------------------------------------------------------------

COMMANDS = (
    ["info"], ["cat"], ["verify"], ["salvage", "{}", "out.fxt"],
    ["convert", "{}", "out.json"], ["convert", "--list"], ["diff", "{}", str(BOOT)],
    ["diff", str(BOOT), "{}"], ["account"], ["stack"], ["graph"],
    ["selectors"], ["watch", "--count", "1"], ["record"], ["explain", "{}@0"],
    ["sql", "{}", "select 1 from slices"],
)  # fmt: skip


@cases("command", COMMANDS, ids=lambda command: "-".join(command)[:24])
def test_a_folder_in_place_of_a_file_says_what_to_do(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "my captures"
    folder.mkdir()
    words = [word.format(folder) for word in command]
    done = run_cli(*words, *([] if words != command or str(BOOT) in command else [folder]))
    assert done.exit_code == ExitCode.FAILED, done.stderr
    assert "this is a folder" in done.stderr
    assert f"{shlex.quote(str(folder))}/*" in done.stderr
    assert f"fxf batch {shlex.quote(str(folder))} --out" in done.stderr
    assert not done.stdout or "{" in done.text  # JSON of what failed


@cases("verb", [fxf.verify, fxf.open, lambda path: fxf.diff(path, path)])
def test_a_folder_given_to_a_verb(verb: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(fxf.FxError, match="this is a folder"):
        verb(tmp_path)

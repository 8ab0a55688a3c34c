"""Exit statuses, as CONTRACTS §2 has them, and the one style of errors."""

from __future__ import annotations

import re
import shlex
import sys
import types
from pathlib import Path
from typing import Any

import click
import pytest
import toy

from fxframework import hookimpl
from fxframework.cli import session as session_module
from fxframework.errors import ExitCode, MissingExtraError
from fxframework.host import Host
from fxframework.registry import Confidence, Exporter, Reader
from fxframework.testing.cli import run_cli

from ..cases import cases

DAMAGED = toy.toy(toy.mark("m", 1), toy.record(9))
UNKNOWN = toy.toy(toy.mark("m", 1), toy.record(7))
PADDED = toy.toy(toy.mark("m", 1), bytes(24))
HOPELESS = b"\x09" * 50
COMMANDS = {
    "info": ("info",),
    "cat": ("cat",),
    "records": ("cat", "--records"),
    "table": ("cat", "--table", "instants"),
    "csv": ("convert", "-t", "csv", "-o", "table=instants"),
    "jsonl": ("convert", "-t", "records"),
    "toy": ("convert", "-t", "toy"),
    "verify": ("verify",),
}


@cases(
    ("data", "statuses"),
    [
        #          info cat records table csv jsonl toy verify
        (toy.SAMPLE, (0, 0, 0, 0, 0, 0, 0, 0)),
        (PADDED, (0, 0, 0, 0, 0, 0, 0, 0)),
        (UNKNOWN, (0, 0, 0, 0, 0, 0, 0, 3)),
        (DAMAGED, (3, 3, 3, 3, 3, 3, 3, 3)),
        (HOPELESS, (1, 1, 3, 1, 1, 3, 3, 3)),
        (b"", (1, 1, 3, 1, 1, 3, 3, 3)),
        # Sound, but without a row in any table but `threads`.
        (toy.toy(), (0, 0, 0, 0, 1, 0, 0, 0)),
    ],
    ids=["sound", "padded", "unknown", "damaged", "hopeless", "empty", "bare"],
)
def test_statuses(host: Host, tmp_path: Path, data: bytes, statuses: tuple[int, ...]) -> None:
    path = tmp_path / "a.toy"
    path.write_bytes(data)
    for (name, command), expected in zip(COMMANDS.items(), statuses, strict=True):
        out = ("-",) if command[0] == "convert" else ()
        result = run_cli(*command, "-f", "toy", path, *out, host=host)
        assert result.exit_code == expected, (name, result.stderr)
        assert "Traceback" not in result.stderr


def test_strict_stops_at_the_first_loss(host: Host, tmp_path: Path) -> None:
    path, out = tmp_path / "a.toy", tmp_path / "a.jsonl"
    path.write_bytes(DAMAGED)
    for command in (("info", path), ("verify", path), ("cat", path), ("convert", path, out)):
        result = run_cli("--strict", *command, host=host)
        assert result.exit_code == ExitCode.FAILED
        assert result.stderr.startswith("error[TOY0001]: a record is damaged\n  --> ")
        assert "@ 0x00000020, record 2" in result.stderr
        assert "  = The command stops with exit status 1" in result.stderr
    assert not out.exists()
    path.write_bytes(UNKNOWN)
    assert run_cli("--strict", "info", path, host=host).exit_code == ExitCode.OK


def test_a_file_that_cannot_be_opened(host: Host, tmp_path: Path) -> None:
    for command in (("info",), ("cat",), ("verify",), ("cat", "--records")):
        result = run_cli(*command, tmp_path / "none.toy", host=host)
        assert result.exit_code == ExitCode.FAILED
        assert result.stderr.startswith("error[FXF0001]: cannot open: ")
        assert not result.stdout
    assert run_cli("info", tmp_path, host=host).exit_code == ExitCode.FAILED


def test_no_reader_and_too_many(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"who knows")
    for command in (("info", path), ("cat", path), ("verify", path), ("convert", path, "-")):
        result = run_cli(*command, host=host)
        assert result.exit_code == ExitCode.NO_READER
        assert "error[FXF0006]" in result.stderr
    for name in ("one", "two"):
        twin = Reader(format=name, title="", suffixes=(".bin",), open=toy.open_toy,
                      sniff=lambda probe: Confidence.LIKELY)  # fmt: skip
        register(host, name, fx_readers=lambda twin=twin: [twin])
    result = run_cli(path, host=host)
    assert result.exit_code == ExitCode.NO_READER
    assert "the input could be any of one, two" in result.stderr
    assert "-f one" in result.stderr


def register(host: Host, name: str, **hooks: Any) -> None:
    module = types.ModuleType(name)
    for hook, function in hooks.items():
        setattr(module, hook, hookimpl(function))
    host.register(module, name=name, distribution=f"{name}-dist")


def test_a_missing_extra_gives_the_install_line(host: Host, sample: Path, tmp_path: Path) -> None:
    def open_it(sink: Any, options: Any) -> Any:
        raise MissingExtraError("pyarrow", "arrow", purpose="writing .parquet")

    parquet = Exporter(
        name="parquet", title="", accepts="toy", suffixes=(".parquet",), open=open_it
    )
    register(host, "parquet", fx_exporters=lambda: [parquet])
    out = tmp_path / "a.parquet"
    result = run_cli("convert", sample, out, host=host)
    assert result.exit_code == ExitCode.MISSING_EXTRA
    line = next(each for each in result.stderr.splitlines() if "pip install" in each)
    words = shlex.split(line.removeprefix("  = "))
    assert words[:4] == [sys.executable, "-m", "pip", "install"]
    assert words[4:] == ["pyarrow>=18"]
    assert not out.exists()


@cases(
    "arguments",
    [
        ("inof",),
        ("--nonsense",),
        ("info",),
        ("info", "--nonsense", "x"),
        ("cat",),
        ("cat", "SAMPLE", "selector"),
        ("cat", "--records", "--table", "slices", "SAMPLE"),
        ("cat", "--table", "slicez", "SAMPLE"),
        ("cat", "-f", "tyo", "SAMPLE"),
        ("cat", "-o", "max_finding=1", "SAMPLE"),
        ("cat", "-o", "max_findings", "SAMPLE"),
        ("cat", "-o", "max_findings=few", "SAMPLE"),
        ("cat", "--color", "pink", "SAMPLE"),
        ("cat", "--since", "soon", "SAMPLE"),
        ("cat", "--since", "2s", "--until", "1s", "SAMPLE"),
        ("convert", "SAMPLE"),
        ("convert", "SAMPLE", "-"),
        ("convert", "SAMPLE", "out.xyz"),
        ("convert", "SAMPLE", "-", "-t", "cvs"),
        ("convert", "SAMPLE", "-", "-t", "csv", "-o", "tabel=slices"),
        ("convert", "SAMPLE", "SAMPLE", "-", "-t", "toy"),
        ("convert", "SAMPLE", "-", "-t", "toy", "--since", "1us"),
        ("convert", "SAMPLE", "-", "-t", "csv", "--json"),
        ("verify",),
        ("verify", "--since", "1s", "SAMPLE"),
        ("info", "--until", "1s", "SAMPLE"),
        ("explain", "TOY1"),
        ("explain", "SAMPLE@x"),
        ("explain", "SAMPLE@80"),
        ("explain", "SAMPLE@-1"),
        ("explain", "SAMPLE"),
        ("plugins", "extra"),
        (),
    ],
    ids=" ".join,
)
def test_wrong_usage(host: Host, sample: Path, arguments: tuple[str, ...]) -> None:
    given = [text.replace("SAMPLE", str(sample)) for text in arguments]
    result = run_cli(*given, host=host)
    assert result.exit_code == ExitCode.USAGE, result.stderr
    if arguments:
        assert result.stderr.startswith("error[FXF0005]: ")
        assert not result.stdout
    assert "Traceback" not in result.stderr


@cases(
    ("arguments", "hint"),
    [
        (("inof",), "did you mean 'info'"),
        (("cat", "--table", "slicez", "SAMPLE"), "did you mean 'slices'"),
        (("cat", "-f", "tyo", "SAMPLE"), "did you mean 'toy'"),
        (("cat", "-o", "max_finding=1", "SAMPLE"), "did you mean 'max_findings'"),
        (("cat", "-o", "lound=1", "SAMPLE"), "did you mean 'loud'"),
        (("convert", "SAMPLE", "x.cvs"), "did you mean '.csv'"),
        (("convert", "SAMPLE", "-", "-t", "recrods"), "did you mean 'records'"),
        (("convert", "SAMPLE", "-", "-t", "csv", "-o", "tabel=1"), "did you mean 'table'"),
        (("explain", "TOY1"), "did you mean 'TOY0001'"),
        (("convert", "SAMPLE", "-", "--spreadsheet", "yes"), "with -o spreadsheet=VALUE"),
    ],
)
def test_the_nearest_name_is_told(
    host: Host, sample: Path, arguments: tuple[str, ...], hint: str
) -> None:
    given = [text.replace("SAMPLE", str(sample)) for text in arguments]
    assert hint in run_cli(*given, host=host).stderr


def test_several_inputs_give_the_worst_status_and_all_are_done(
    host: Host, sample: Path, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.toy"
    damaged.write_bytes(DAMAGED)
    gone = tmp_path / "gone.toy"
    strange = tmp_path / "strange"
    strange.write_bytes(b"?")
    for files, status in (
        ((sample, sample), 0),
        ((damaged, sample), 3),
        ((strange, damaged, sample), 4),
        ((gone, strange, damaged, sample), 1),
    ):
        result = run_cli("info", *files, host=host)
        assert result.exit_code == status
        assert f"{sample}: toys" in result.text
        assert run_cli("verify", *files, host=host).exit_code == status


def test_worst() -> None:
    assert session_module.worst() == ExitCode.OK
    assert session_module.worst(ExitCode.FINDINGS, ExitCode.FAILED) == ExitCode.FAILED
    assert session_module.worst(ExitCode.FINDINGS, ExitCode.OK) == ExitCode.FINDINGS
    assert set(session_module.ORDER) == set(ExitCode)


# --- What nobody expected ----------------------------------------------------------------------


def breaking(host: Host, error: BaseException) -> None:
    def open_it(*_: Any) -> Any:
        raise error

    def sniff(probe: Any) -> Confidence:
        return Confidence.CERTAIN if probe.head == b"break" else Confidence.NONE

    reader = Reader(format="breaking", title="", suffixes=(), sniff=sniff, open=open_it)
    register(host, "breaking", fx_readers=lambda: [reader])


def test_an_unexpected_exception_is_a_message_and_no_traceback(host: Host) -> None:
    breaking(host, ZeroDivisionError("one over none"))
    result = run_cli("info", "-", stdin=b"break", host=host)
    assert result.exit_code == ExitCode.FAILED
    assert result.stderr.startswith("error[FXF0000]: this is a bug in ")
    assert "ZeroDivisionError: one over none" in result.stderr
    assert "Traceback" not in result.stderr
    verbose = run_cli("info", "-", "-v", stdin=b"break", host=host)
    assert "Traceback" in verbose.stderr


def test_the_bug_is_told_to_be_that_of_the_plugin_in_whose_code_it_is(
    host: Host, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toy.ToyCapture, "_record", toy.ToyCapture.records)  # a TypeError in toy.py
    result = run_cli("info", sample, host=host)
    assert result.exit_code == ExitCode.FAILED
    assert result.stderr.startswith("error[FXF0009]: TypeError: ")
    assert "raised by the plugin toy (toys) in toy, line " in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 0),
        (MemoryError(), 1),
        (OSError(28, "No space left on device", "/full"), 1),
        (click.exceptions.Exit(0), 0),
        (RecursionError("deep"), 1),
    ],
)
def test_other_ends(host: Host, error: BaseException, status: int) -> None:
    breaking(host, error)
    result = run_cli("info", "-", stdin=b"break", host=host)
    assert result.exit_code == status
    assert "Traceback" not in result.stderr
    if isinstance(error, KeyboardInterrupt | BrokenPipeError):
        assert not result.stderr
    if isinstance(error, OSError) and error.filename:
        assert "No space left on device\n  --> /full" in result.stderr


def test_control_characters_of_a_capture_do_not_reach_the_terminal(
    host: Host, tmp_path: Path
) -> None:
    path = tmp_path / "evil\x1b[31m.toy"
    path.write_bytes(toy.toy(toy.mark(b"\x1b[2J\t", 1), toy.mark(b"\xc2\x9b1m", 2)))
    for command in (("info",), ("cat",), ("cat", "--table", "instants"), ("verify",)):
        result = run_cli(*command, path, host=host, terminal=True)
        assert b"\x1b[2J" not in result.stdout
        assert b"\x1b[31m" not in result.stdout
        assert b"\xc2\x9b" not in result.stdout
    assert b"\\x1b[2J" in run_cli("cat", path, host=host, terminal=True).stdout
    assert b"\x1b[2J" in run_cli("cat", path, host=host).stdout  # a pipe gets the bytes
    result = run_cli("info", tmp_path / "gone\x1b[31m", host=host, terminal=True)
    assert "\x1b[31m." not in result.stderr
    assert "gone\\x1b[31m" in result.stderr


def test_colours_only_where_they_are_wanted(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.toy"
    path.write_bytes(DAMAGED)
    monkeypatch.delenv("NO_COLOR", raising=False)

    def coloured(*arguments: str, terminal: bool = False) -> tuple[bool, bool]:
        result = run_cli("verify", *arguments, path, path / "x", host=host, terminal=terminal)
        return b"\x1b[" in result.stdout, "\x1b[" in result.stderr

    assert coloured() == (False, False)
    assert coloured(terminal=True) == (True, True)
    assert coloured("--color", "never", terminal=True) == (False, False)
    assert coloured("--color", "always") == (True, True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured(terminal=True) == (False, False)
    assert coloured("--color", "always") == (True, True)


def test_failed_plugins_are_told_once_and_not_with_q(host: Host, sample: Path) -> None:
    host.register(types.ModuleType("empty"), name="empty", distribution="void")
    result = run_cli("info", sample, host=host)
    assert result.exit_code == ExitCode.OK
    assert result.stderr.count("warning[FXF0008]: plugin empty (void)") == 1
    assert not run_cli("-q", "info", sample, host=host).stderr


def test_arguments_that_are_no_utf8_are_no_bug(host: Host, tmp_path: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("file names are text there")
    path = tmp_path / b"caf\xe9.toy".decode("utf-8", "surrogateescape")
    path.write_bytes(toy.SAMPLE)
    result = run_cli("info", path, host=host)
    assert result.exit_code == ExitCode.OK
    assert b"caf\xe9.toy" in result.stdout
    assert run_cli("info", "--json", path, host=host).json()["captures"][0]["format"] == "toy"
    assert run_cli("verify", path, str(path) + "x", host=host).exit_code == ExitCode.FAILED


def test_messages_agree_with_whatever_name_a_format_has() -> None:
    """No article stands before a format: "a inspect capture" was one."""
    root = Path(__file__).resolve().parents[2]
    article = re.compile(r"\b[Aa]n? \{[\w.]*format\}")
    for folder in ("fxframework", "plugins", "emulator"):
        for path in root.glob(f"{folder}/**/*.py"):
            assert not article.search(path.read_text("utf-8")), path

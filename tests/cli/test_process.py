"""What only a process shows: start-up, pipes, signals, progress."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import toy

from fxframework.cli import progress
from fxframework.cli.progress import PATIENCE
from fxframework.cli.render import Screen
from fxframework.cli.session import Session

from ..cases import cases

FXF = [sys.executable, "-m", "fxframework.cli"]
CONFORMANCE = Path(__file__).resolve().parents[1] / "conformance"
WITH_TOY = """
import sys
sys.path.insert(0, {core!r})
import toy
from fxframework.cli import main
from fxframework.host import default_host
default_host().register(toy, name="toy")
sys.exit(main())
"""


@pytest.fixture
def fxf() -> list[str]:
    """A command line that knows the toy format."""
    code = WITH_TOY.format(core=str(Path(toy.__file__).parent))
    return [sys.executable, "-c", code]


@pytest.fixture
def big(tmp_path: Path) -> Path:
    """A capture of more text than a pipe holds."""
    path = tmp_path / "big.toy"
    path.write_bytes(toy.toy(*(toy.mark("m", at) for at in range(6_000))))
    return path


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from fxframework.cli import main\n"
        "assert main(['--help']) == 0\n"
        "heavy = {'numpy', 'rich', 'orjson', 'cattrs', 'fx_trace.format',"
        " 'fxframework.cli.info', 'fxframework.cli.doctor', 'fxframework.model.capture'}\n"
        "print(sorted(heavy & sys.modules.keys()), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stderr.decode().splitlines()[-1] == "[]"
    assert b"convert" in done.stdout


@cases("arguments", [("--version",), ("explain", "FXF0001"), ("plugins",)])
def test_other_light_commands_load_no_numpy(arguments: tuple[str, ...]) -> None:
    code = (
        "import sys\n"
        "from fxframework.cli import main\n"
        f"assert main({list(arguments)!r}) == 0\n"
        "sys.exit(bool({'numpy'} & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_a_trace_is_recognised_without_other_formats() -> None:
    capture = CONFORMANCE / "trace" / "files" / "magic_trace_sample.fxt"
    code = (
        "import sys\n"
        "import fxframework as fxf\n"
        f"assert fxf.open({str(capture)!r}).format == 'trace'\n"
        "others = {f'fx_{name}.format' for name in ('inspect', 'log', 'xray')}\n"
        "print(sorted(others & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"


def test_the_command_of_the_package() -> None:
    done = subprocess.run([*FXF, "--version"], capture_output=True, check=True)
    assert done.stdout.startswith(b"fxf ")


@pytest.mark.parametrize(
    "command",
    [
        ("cat", "BIG"),
        ("cat", "--records", "BIG"),
        ("cat", "--table", "instants", "BIG"),
        ("convert", "BIG", "-", "-t", "csv"),
    ],
)
def test_a_reader_that_goes_away_is_no_error(
    fxf: list[str], big: Path, command: tuple[str, ...]
) -> None:
    process = subprocess.Popen(
        [*fxf, *(str(big) if word == "BIG" else word for word in command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    told = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), told) == (0, b"")


def test_pipes_both_ways(fxf: list[str], big: Path) -> None:
    first = subprocess.Popen([*fxf, "convert", str(big), "-", "-t", "records"],
                             stdout=subprocess.PIPE)  # fmt: skip
    second = subprocess.run([*fxf, "convert", "-", "-", "-t", "toy"], stdin=first.stdout,
                            capture_output=True, check=True)  # fmt: skip
    assert first.stdout is not None
    first.stdout.close()
    assert first.wait() == 0
    assert second.stdout == big.read_bytes()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_is_read(fxf: list[str], tmp_path: Path) -> None:
    pipe = tmp_path / "a.toy"
    os.mkfifo(pipe)
    with subprocess.Popen([*fxf, "cat", str(pipe)], stdout=subprocess.PIPE) as process:
        pipe.write_bytes(toy.SAMPLE)
        out, _ = process.communicate()
    assert out.startswith(b"magic")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_an_interrupt_is_quiet_and_leaves_nothing(tmp_path: Path) -> None:
    """The input never comes: the command waits for it, and is interrupted."""
    pipe = tmp_path / "never.fxt"
    os.mkfifo(pipe)
    out = tmp_path / "out.jsonl"
    with subprocess.Popen([*FXF, "convert", str(pipe), str(out)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:  # fmt: skip
        holder = pipe.open("wb")  # returns once the command has opened its end
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        told = process.communicate()
        holder.close()
    assert process.returncode == 130
    assert told == (b"", b"")
    assert not out.exists()


INTERRUPTED_AT = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
sys.argv = ["fxf", "plugins"]
from fxframework.cli import main
sys.exit(main())
"""
IMPORTED = ["fxframework.cli.app", "click", "pluggy", "fxframework.host", "fxframework.hookspecs",
            "fxframework.cli.plugins", "fx_trace.plugin"]  # fmt: skip


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
@cases("module", IMPORTED)
def test_an_interrupt_while_modules_are_imported_is_quiet(module: str) -> None:
    code = INTERRUPTED_AT.format(module=module)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode in {130, -signal.SIGINT}
    assert done.stderr == b""


def test_output_is_utf8_whatever_the_locale(fxf: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.toy"
    path.write_bytes(toy.toy(toy.mark("Zoë", 1)))
    environ = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*fxf, "cat", "--table", "instants", str(path)], env=environ,
                          capture_output=True, check=True)  # fmt: skip
    assert "Zoë" in done.stdout.decode()


def test_the_switches_reach_the_command_line() -> None:
    environ = {**os.environ, "FXF_PLUGINS": ""}
    done = subprocess.run([*FXF, "plugins"], env=environ, capture_output=True, check=True)
    assert b"disabled" in done.stdout
    assert b"loaded" not in done.stdout


# --- Progress ----------------------------------------------------------------------------------


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Screen:
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen()
    Session(screen)
    screen.err_is_terminal = True
    return screen


def test_progress_is_shown_after_a_while(
    terminal: Screen, capsys: pytest.CaptureFixture[str]
) -> None:
    with terminal.working("brewing", noun="poured") as working:
        working(2_500_000)
        assert re.fullmatch(r"brewing  [\d,.]+ MB/s, 2\.5 MB poured", working.text())
        working(2_500_000, 30, 120)
        assert re.fullmatch(
            r"brewing  25 %, [\d,.]+ MB/s, \d+ s left, 2\.5 MB poured", working.text()
        )
        time.sleep(PATIENCE + 0.4)
    lines = capsys.readouterr().err.split("\r")
    assert len(lines) > 3
    assert lines[1].startswith("\x1b[32m|\x1b[0m brewing  25 %, ")
    assert lines[1].endswith(" 0:00:00\x1b[K")
    assert lines[-1] == "\x1b[K"


def test_progress_fits_the_line_and_drives_no_terminal(
    terminal: Screen, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(progress, "PATIENCE", 0)
    with terminal.working("a\x1b[2J" + 200 * "b"):
        time.sleep(0.05)
    _, first, *_ = capsys.readouterr().err.split("\r")
    assert first.startswith("| a\\x1b[2Jbbb")
    assert first.endswith("b 0:00:00\x1b[K")
    assert len(first) == progress.WIDTH - 1 + len(progress.ERASE)


def test_what_is_quick_shows_no_progress(
    terminal: Screen, capsys: pytest.CaptureFixture[str]
) -> None:
    with terminal.working("brewing") as working:
        working.watch(lambda: 5_000_000)
        assert working.text().endswith(", 5.0 MB")
    terminal.settings.quiet = True
    with terminal.working("brewing"):
        time.sleep(PATIENCE + 0.2)
    terminal.settings.quiet = False
    terminal.err_is_terminal = False
    with terminal.working("brewing"):
        time.sleep(PATIENCE + 0.2)
    out = capsys.readouterr()
    assert (out.out, out.err) == ("", "")


def test_the_shell_completes_commands() -> None:
    environ = {
        **os.environ, "_FXF_COMPLETE": "bash_complete", "COMP_WORDS": "fxf ver", "COMP_CWORD": "1",
    }  # fmt: skip
    done = subprocess.run(FXF, env=environ, capture_output=True, check=False)
    assert done.stdout.split() == [b"plain,verify"]

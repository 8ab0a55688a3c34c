"""Plugins that are files: loaded where they are named, and contained like installed ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fxframework import containment, plugin_files
from fxframework.errors import ExitCode
from fxframework.host import Host
from fxframework.testing.cli import run_cli

EXPORTER = '''"""Names of slices."""

from fxframework import hookimpl
from fxframework.registry import Exporter


class Names:
    """Writes a line for each slice."""

    def __init__(self, sink, options):
        self.sink = sink

    def write(self, capture):
        """Write the names."""
        {work}
        for batch in capture.batches("slices"):
            self.sink.write("".join(f"{{name}}\\n" for name in batch.texts("name")).encode())

    def close(self):
        """Say that nothing was left out."""
        return {{}}


@hookimpl
def fx_exporters():
    """Return the exporter."""
    return Exporter(name="names", accepts=frozenset({{"slices"}}), open=Names)
'''
HOOK = "from fxframework import hookimpl\n@hookimpl\ndef fx_readers():\n    {}\n"
TWICE = "from fxframework.registry import Reader\n    return [Reader(format='x', open=list)] * 2"
FAULTS = {
    "raises": ("raise KeyError('the pen')", "cannot be imported: KeyError: 'the pen'"),
    "declares what cannot be": (
        "from fxframework.plugin import wire\nwire.u8(values={256: 'late'})",
        "which holds 0 to 255; correct the number, or give the field more bits",
    ),
    "is not Python": ("def", "cannot be imported: SyntaxError"),
    "exits": ("import sys\nsys.exit(7)", "cannot be imported: EscapeError: SystemExit: 7"),
    "interrupts": ("raise KeyboardInterrupt", "cannot be imported: EscapeError"),
    "hangs": ("import time\ntime.sleep(60)", "it did not return within 0.5 s"),
    "registers nothing": ("", "implements no hook; is @hookimpl missing?"),
    "has a hook that raises": (HOOK.format("raise KeyError(1)"), "fx_readers failed: KeyError: 1"),
    "has a hook that exits": (HOOK.format("raise SystemExit(7)"), "SystemExit: 7"),
    "has a hook that hangs": (
        HOOK.format("\n    while True:\n        __import__('time').sleep(0.01)"),
        "fx_readers failed: TimeoutError: it did not return within 0.5 s",
    ),
    "has a list that raises": (HOOK.format("yield 1 / 0"), "fx_readers failed: ZeroDivisionError"),
    "registers a number": (HOOK.format("return [17]"), "fx_readers returned 17, not a Reader"),
    "registers twice": (HOOK.format(TWICE), "reader 'x' is already registered by bad"),
    "has another API": ("FXFRAMEWORK_API = 0", "it is built for version 0 of the plugin API"),
}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace with instants."""
    sample = Host().reader("trace").sample
    assert sample is not None
    path = tmp_path / "a.fxt"
    path.write_bytes(sample(2000))
    return path


def module(folder: Path, text: str, name: str = "bad") -> Path:
    """A plugin file."""
    path = folder / f"{name}.py"
    path.write_text(text)
    return path


def exporter(folder: Path, work: str = "", name: str = "names") -> Path:
    return module(folder, EXPORTER.format(work=work), name)


@pytest.mark.parametrize("place", ["before", "after", "variable"])
def test_a_file_is_a_plugin_where_it_is_named(
    place: str, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = exporter(tmp_path)
    option = ["--plugin", path]
    before, after = (option, []) if place == "before" else ([], option)
    if place == "variable":
        monkeypatch.setenv("FXF_PLUGIN_PATH", str(path))
        before = after = []
    shown = run_cli(*before, "plugins", *after, "--json").json()
    (plugin,) = (each for each in shown["plugins"] if each["name"] == "names")
    assert (plugin["distribution"], plugin["status"]) == (str(path), "loaded")
    assert plugin["registers"] == {"exporters": ["names"]}
    done = run_cli(*before, "convert", *after, trace, "-", "-t", "names")
    assert done.exit_code == ExitCode.OK, done.stderr
    assert done.stdout.count(b"\n")
    assert "names" not in sys.modules
    assert not list(tmp_path.glob("__pycache__"))
    if place != "variable":
        assert run_cli("convert", trace, "-", "-t", "names").exit_code == ExitCode.USAGE
        assert "FXF_PLUGIN_PATH" not in os.environ


def test_a_file_is_checked_by_the_contracts(tmp_path: Path) -> None:
    path = exporter(tmp_path)
    done = run_cli("plugins", "--plugin", path, "--check", "names")
    assert done.exit_code == ExitCode.FINDINGS
    assert "failed unknown_columns_are_passed_on_or_reported" in done.text
    assert "1 of " in done.text


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_that_is_wrong_is_listed_and_the_command_goes_on(
    fault: str, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containment, "PATIENCE", 0.5)
    text, message = FAULTS[fault]
    path = module(tmp_path, text)
    done = run_cli("--plugin", path, "info", trace)
    assert done.exit_code == ExitCode.OK
    assert "Fuchsia trace archive" in done.text
    assert done.stderr.count("FXF0008") == 1, done.stderr
    assert message in done.stderr
    assert f"bad ({path})" in done.stderr
    shown = run_cli("--plugin", path, "plugins", "--json").json()
    (plugin,) = (each for each in shown["plugins"] if each["name"] == "bad")
    assert plugin["status"] in {"failed", "partial"}


@pytest.mark.parametrize("text", ["print('hello')", HOOK.format("print('hello'); return []")])
def test_what_a_file_prints_does_not_get_into_the_output(
    text: str, trace: Path, tmp_path: Path
) -> None:
    done = run_cli("--plugin", module(tmp_path, text), "info", "--json", trace)
    assert done.json()
    assert "hello" in done.stderr


def test_what_an_exporter_prints_does_not_get_into_the_output(trace: Path, tmp_path: Path) -> None:
    command = ("convert", trace, "-", "-t", "names", "-q")
    clean = run_cli("--plugin", exporter(tmp_path), *command)
    loud = run_cli("--plugin", exporter(tmp_path, "print('hello')"), *command[:-1])
    assert loud.stdout == clean.stdout
    assert "plugin names printed to standard output" in loud.stderr


@pytest.mark.parametrize("work", ["raise KeyError(1)", "raise SystemExit(0)"])
def test_a_file_is_blamed_for_what_it_raises(work: str, trace: Path, tmp_path: Path) -> None:
    path = exporter(tmp_path, work)
    out = tmp_path / "out.names"
    done = run_cli("--plugin", path, "convert", trace, out)
    assert done.exit_code == ExitCode.FAILED
    assert f"raised by the plugin names ({path})" in done.stderr
    assert "Traceback" not in done.stderr
    assert not out.exists()


BESIDE = '''"""What a plugin has in a module of its own."""


def open_names(sink, options):
    """Open the exporter."""
    raise KeyError("the pen")
'''


def test_a_file_is_blamed_for_a_module_beside_it(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module(tmp_path, BESIDE, "beside_names")
    text = EXPORTER.format(work="").replace("open=Names", "open=beside_names.open_names")
    path = module(tmp_path, f"import beside_names\n{text}", "names")
    done = run_cli("--plugin", path, "convert", trace, tmp_path / "out.names", "-t", "names")
    assert done.exit_code == ExitCode.FAILED
    assert f"KeyError: 'the pen', raised by the plugin names ({path}) in beside_n" in done.stderr


def test_a_file_that_does_not_end_is_stopped_in_time(trace: Path, tmp_path: Path) -> None:
    path = exporter(tmp_path, "import time; time.sleep(60)")
    command = [sys.executable, "-m", "fxframework", "--plugin", path, "convert", trace, "-"]
    done = subprocess.run(
        [*command, "-t", "names", "--max-time", "0.5"],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == ExitCode.FAILED
    assert "error[FXF00" in done.stderr


def test_names_that_are_taken_are_refused(trace: Path, tmp_path: Path) -> None:
    """A file cannot stand in for an installed plugin, a module, or another file."""
    (tmp_path / "other").mkdir()
    first, second = exporter(tmp_path), exporter(tmp_path / "other")
    installed = exporter(tmp_path, name="trace")
    done = run_cli(
        "--plugin", first, "--plugin", second, "--plugin", first, "info", trace,
        "--plugin", installed,
    )  # fmt: skip
    assert done.exit_code == ExitCode.OK
    assert f"{first} already has a plugin of this name; that of {second} is left out" in done.stderr
    assert f"already has a plugin of this name; that of {installed} is left out" in done.stderr
    assert done.stderr.count("FXF0008") == 2


@pytest.mark.parametrize("name", ["json", "orjson", "os"])
def test_a_file_hides_no_module(name: str, trace: Path, tmp_path: Path) -> None:
    done = run_cli("--plugin", exporter(tmp_path, name=name), "info", "--json", trace)
    assert done.json()
    assert "exporters" in run_cli("plugins", "--plugin", tmp_path / f"{name}.py", "--json").text


def test_nothing_is_loaded_by_itself(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither from the current folder nor from that of the input, whatever the variable says."""
    for name in ("names", "fxf_plugin", "conftest", "plugin", "sitecustomize"):
        module(tmp_path, "raise SystemExit('loaded')", name)
    monkeypatch.chdir(tmp_path)
    for variable in ("", os.pathsep, f"{os.pathsep}{os.pathsep}"):
        monkeypatch.setenv("FXF_PLUGIN_PATH", variable)
        done = run_cli("info", trace)
        assert (done.exit_code, done.stderr) == (ExitCode.OK, "")
    monkeypatch.setenv("FXF_PLUGIN_PATH", os.pathsep.join(("names.py", ".", str(tmp_path))))
    done = run_cli("info", trace)
    assert done.exit_code == ExitCode.OK
    assert re.findall(r"(takes absolute paths|no such Python module)", done.stderr) == [
        "takes absolute paths", "takes absolute paths", "no such Python module",
    ]  # fmt: skip


@pytest.mark.parametrize("made", [None, "folder"])
def test_an_option_without_a_file_is_wrong_usage(made: str | None, tmp_path: Path) -> None:
    path = tmp_path / "names.py"
    if made:
        path.mkdir()
    done = run_cli("--plugin", path, "plugins")
    assert done.exit_code == ExitCode.USAGE
    assert "there is no such plugin file" in done.stderr


def test_a_file_can_be_disabled_and_is_then_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = module(tmp_path, "raise SystemExit('loaded')")
    host = Host(environ={"FXF_PLUGIN_PATH": str(path), "FXF_DISABLE_PLUGINS": "bad"})
    assert [each.status for each in host.plugins() if each.name == "bad"] == ["disabled"]
    assert host.failures == ()


def test_a_given_host_gets_the_file_too(trace: Path, tmp_path: Path) -> None:
    host = Host()
    done = run_cli("convert", trace, "-", "--plugin", exporter(tmp_path), "-t", "names", host=host)
    assert done.exit_code == ExitCode.OK
    assert plugin_files.PREFIX + "names" in host.modules().values()


def test_other_processes_have_the_plugin(trace: Path, tmp_path: Path) -> None:
    """Workers of `fxf batch` open captures of a format that a file reads."""
    path = module(
        tmp_path,
        "from fxframework import hookimpl\nfrom fxframework.registry import Reader\n"
        "from fxframework.host import Host\nimport attrs\n"
        "@hookimpl\ndef fx_readers():\n"
        "    trace = Host(environ={'FXF_PLUGINS': 'trace'}).reader('trace')\n"
        "    return attrs.evolve(trace, format='mine')\n",
        "mine",
    )
    again = tmp_path / "b.fxt"
    again.write_bytes(trace.read_bytes())
    command = [sys.executable, "-m", "fxframework", "--plugin", path, "batch", "-f", "mine"]
    done = subprocess.run(
        [*command, trace, again, "--out", tmp_path / "set", "--jobs", "2"],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == ExitCode.OK, done.stderr

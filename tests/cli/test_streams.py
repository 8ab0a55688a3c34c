"""Standard streams that are closed or full, and the ways in which the program is started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..cases import cases

ROOT = Path(__file__).resolve().parents[2]
BOOT = ROOT / "examples" / "scenarios" / "boot.golden" / "boot.fxt"
FXF = f"{sys.executable} -m fxframework"
SHELL = pytest.mark.skipif(os.name == "nt", reason="the redirections are those of a POSIX shell")


def shell(command: str, cwd: Path = ROOT) -> tuple[int, str, str]:
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=cwd, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@SHELL
@cases(
    "command",
    [
        f"info {BOOT}",
        f"cat {BOOT}",
        f"cat --records {BOOT}",
        "plugins",
        "--help",
        f"convert {BOOT} - -t json",
    ],
)
def test_a_closed_standard_output_is_an_error(command: str) -> None:
    status, _, err = shell(f"{FXF} {command} >&-")
    assert status == 1, err
    assert "standard output is closed" in err
    assert "Traceback" not in err
    assert "FXF0000" not in err


@SHELL
def test_a_closed_standard_output_does_not_matter_where_nothing_is_printed(tmp_path: Path) -> None:
    status, _, err = shell(f"{FXF} convert {BOOT} {tmp_path}/a.json >&-")
    assert status == 0, err
    assert (tmp_path / "a.json").stat().st_size > 1000


@SHELL
def test_a_closed_standard_input_is_an_error() -> None:
    status, _, err = shell(f"{FXF} cat - <&-")
    assert status == 1
    assert "standard input is closed" in err
    assert "FXF0000" not in err


@SHELL
def test_a_closed_standard_error_changes_nothing_else() -> None:
    usual = shell(f"{FXF} cat {BOOT}")[1]
    for closed in ("2>&-", "<&- 2>&-", "<&-"):
        status, out, _ = shell(f"{FXF} cat {BOOT} {closed}")
        assert (status, out) == (0, usual), closed
    assert shell(f"{FXF} cat nowhere.fxt 2>&-")[0] == 1


@SHELL
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("command", [f"cat {BOOT} >/dev/full", f"info {BOOT} >/dev/full",
                                     f"convert {BOOT} /dev/full -t json"])  # fmt: skip
def test_a_full_disk_names_the_file_and_has_a_code(command: str) -> None:
    status, _, err = shell(f"{FXF} {command}")
    assert status == 1
    assert err.startswith("error[FXF0010]: ")
    assert "No space left on device" in err
    assert "/dev/full" in err or "<stdout>" in err
    assert "Traceback" not in err


@SHELL
def test_a_name_that_begins_with_a_dash(tmp_path: Path) -> None:
    (tmp_path / "-dash.fxt").write_bytes(BOOT.read_bytes())
    for command in ("-- -dash.fxt", "info -- -dash.fxt"):
        status, out, err = shell(f"{FXF} {command}", cwd=tmp_path)
        assert (status, err) == (0, ""), command
        assert out


@SHELL
def test_the_package_is_a_program() -> None:
    for module in ("fxframework", "fxframework.cli"):
        status, out, _ = shell(f"{sys.executable} -m {module} --version")
        assert (status, out.split()[0]) == (0, "fxf")

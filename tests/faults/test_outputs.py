"""An output that cannot be written: on a full disk, in a folder that refuses or is a file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fxframework.errors import ExitCode, TemporaryFileError
from fxframework.host import Host
from fxframework.io.pending import scratch_folder
from fxframework.testing.cli import CliResult, run_cli

resource = pytest.importorskip("resource", reason="limits of a process are POSIX's")
SCENARIO = Path(__file__).parents[2] / "examples" / "scenarios" / "boot.toml"
ROOM = 4096
"""Bytes that a file may have on a full disk."""
FORMATS = ("trace", "log", "inspect", "xray")
NOTHING = {"blobs", "otlp", "journald"}
"""Targets that have nothing to write of some samples."""


@pytest.fixture(scope="module")
def host() -> Host:
    return Host()


@pytest.fixture(scope="module")
def samples(host: Host, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A capture of each format whose outputs need more than ``ROOM``, and a damaged trace."""
    folder = tmp_path_factory.mktemp("samples")
    found = {}
    for format in FORMATS:
        make = host.reader(format).sample
        assert make is not None
        found[format] = folder / f"big.{format}"
        found[format].write_bytes(make(200_000))
    found["damaged"] = folder / "big.damaged"
    found["damaged"].write_bytes(found["trace"].read_bytes()[:100_001])
    return found


@contextmanager
def full_disk(room: int = ROOM) -> Iterator[None]:
    """Files of this process cannot grow beyond ``room``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def check_told(result: CliResult, out: Path, code: str = "FXF0010") -> None:
    """One message with the code, what is wrong, the file, and what to do."""
    assert result.exit_code == ExitCode.FAILED
    assert result.stderr.startswith(f"error[{code}]: cannot write")
    assert "File too large" in result.stderr
    assert f"--> {out}\n" in result.stderr
    assert "free some space" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("format", FORMATS)
def test_a_full_disk_ends_every_conversion(
    format: str, host: Host, samples: dict[str, Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    out = tmp_path / "out"
    out.write_bytes(b"as it was")
    with host.open(samples[format]) as capture:
        targets = {exporter.name for exporter in host.exporters_for(format, capture.tables)}
    for target in sorted(targets | {format}):
        with full_disk():
            result = run_cli("convert", "--force", samples[format], out, "-t", target, host=host)
        if result.stderr.startswith("error[FXF0002]") and target in NOTHING:
            continue
        if target == "duckdb":  # made beside, and copied when it is whole
            check_told(result, scratch, "FXF0011")
        else:
            check_told(result, out)
        # What was there stays, and nothing is left beside it.
        assert out.read_bytes() == b"as it was", target
        assert {path.name for path in tmp_path.iterdir()} == {"out", "scratch"}, target
        assert not any(path.name.startswith("fxf-") for path in scratch.iterdir()), target


COMMANDS = {
    "salvage": ("salvage", "DAMAGED", "OUT"),
    "graph": ("graph", "XRAY", "--out", "OUT"),
    "packed": ("convert", "TRACE", "OUT", "-t", "csv"),
    "part": ("convert", "TRACE", "OUT", "-t", "trace", "--since", "0"),
    "merged": ("convert", "TRACE", "LOG", "OUT", "-t", "perfetto"),
}


NAMES = {"packed": "out.csv.gz"}


def command(name: str, samples: dict[str, Path], out: Path) -> list[object]:
    words = {"OUT": out, **{format.upper(): path for format, path in samples.items()}}
    return [words.get(word, word) for word in COMMANDS[name]]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_ends_every_command(
    name: str, host: Host, samples: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / NAMES.get(name, "out.fxt")
    with full_disk():
        result = run_cli(*command(name, samples, out), host=host)
    check_told(result, out)
    assert not list(tmp_path.iterdir())


def refusing(kind: str, tmp_path: Path) -> Path:
    """A folder into which nothing can be written."""
    if kind == "read-only":
        folder = tmp_path / "read-only"
        folder.mkdir(mode=0o555)
        return Path("/sys") if os.access(folder, os.W_OK) else folder  # root may write anywhere
    if kind == "missing":
        return tmp_path / "missing"
    (tmp_path / "file").touch()
    return tmp_path / "file"


PLACES = {
    "a link in a circle": ("loop", "it already exists"),
    "a link to nothing": ("dangling", "it already exists"),
    "a link to a file": ("link", "it already exists"),
    "a link to a folder": ("link_to_folder", "it is a folder"),
    "a file": ("file", "it already exists"),
    "a folder": ("folder", "it is a folder"),
    "below a file": ("file/x", "cannot write there: Not a directory"),
    "below a link in a circle": ("loop/x", "cannot write there"),
    "below nothing": ("missing/x", "cannot write there: No such file"),
    "too long": ("x" * 300, "cannot write there: File name too long"),
    "a device that is full": ("/dev/full", "cannot write: No space left"),
}


@pytest.mark.parametrize("force", [False, True], ids=["", "force"])
@pytest.mark.parametrize("kind", PLACES)
def test_each_kind_of_name_is_written_or_refused_with_what_is_so(
    kind: str, force: bool, samples: dict[str, Path], tmp_path: Path
) -> None:
    for link, target in {"loop": "pool", "pool": "loop", "dangling": "nothing", "link": "file",
                         "link_to_folder": "folder"}.items():  # fmt: skip
        (tmp_path / link).symlink_to(target)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"as it was")
    name, why = PLACES[kind]
    out = tmp_path / name
    words = ["convert", samples["trace"], out, "-t", "csv", *(["--force"] if force else [])]
    result = run_cli(*words)
    if force and why == "it already exists":
        assert result.exit_code == ExitCode.OK
        assert out.is_file()
        assert not out.is_symlink()
    else:
        assert result.exit_code == ExitCode.FAILED
        assert why in result.stderr
        assert f"--> {out}\n" in result.stderr
        assert ("free some space" in result.stderr) == (kind == "a device that is full")
    if kind != "a file" or not force:
        assert (tmp_path / "file").read_bytes() == b"as it was"


@pytest.mark.parametrize("name", ["loop/", "dangling/", "link/", "file/", "full_folder/"])
def test_a_folder_is_only_made_where_nothing_is(
    name: str, samples: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nothing")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "file").touch()
    (tmp_path / "full_folder").mkdir()
    (tmp_path / "full_folder" / "file").touch()
    pytest.importorskip("pyarrow")
    result = run_cli("convert", samples["trace"], f"{tmp_path}/{name}", "-t", "parquet", "--force")
    assert result.exit_code == ExitCode.FAILED
    assert "it already exists and is not an empty folder" in result.stderr


@pytest.mark.parametrize("kind", ["read-only", "missing", "file"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_place_that_refuses_is_told_before_anything_is_read(
    kind: str, name: str, host: Host, samples: dict[str, Path], tmp_path: Path
) -> None:
    out = refusing(kind, tmp_path) / NAMES.get(name, "out.fxt")
    result = run_cli(*command(name, samples, out), host=host)
    assert result.exit_code == ExitCode.FAILED
    assert result.stderr.startswith("error[FXF0002]: cannot write there: ")
    assert f"--> {out}\n" in result.stderr
    assert "that the folder exists and is writable" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_scratch_file_that_does_not_fit_is_told(
    host: Host, samples: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(TemporaryFileError, match="gone"), scratch_folder("test"):
        pass
    shutil.copy(samples["trace"], tmp_path / "a.fxt")
    result = run_cli("convert", tmp_path / "a.fxt", tmp_path / "a.duckdb", host=host)
    assert result.exit_code == ExitCode.FAILED
    assert result.stderr.startswith("error[FXF0011]: cannot write a temporary file: ")
    assert "gone" in result.stderr


def test_a_new_plugin_on_a_full_disk(host: Host, tmp_path: Path) -> None:
    with full_disk(1000):  # no file of a plugin is large
        result = run_cli("new-plugin", "format", "beats", "--into", tmp_path, host=host)
    check_told(result, tmp_path / "fx-beats")
    assert list(tmp_path.iterdir()) == []


def test_outputs_of_a_scenario_on_a_full_disk(host: Host, tmp_path: Path) -> None:
    """The step that makes it fails, and the report lists what is there."""
    out = tmp_path / "out"
    with full_disk():
        result = run_cli("replay", SCENARIO, "--out", out, host=host)
    assert result.exit_code == ExitCode.FAILED
    assert "boot.fxt: cannot write: File too large; free some space" in result.text
    assert result.text.splitlines()[-1].endswith("out: report.json")
    assert [each.name for each in out.iterdir()] == ["report.json"]

"""Outputs leave nothing behind, whatever ends their process, and never replace a file unasked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fxframework.errors import WriteRefusedError
from fxframework.io import pending
from fxframework.io.pending import remove_leftovers, scratch_folder
from fxframework.io.sink import Sink

WRITER = """
import sys
from fxframework.io import pending
from fxframework.io.sink import Sink
if sys.argv[2] == "named":
    pending._unnamed = lambda folder: None
with Sink.open(sys.argv[1], force=True) as sink, pending.scratch_folder("test") as folder:
    (folder / "a").write_bytes(b"some")
    sink.write(b"x" * 10_000_000)
    print(folder, flush=True)
    sys.stdin.read()
"""
unnamed = pytest.param("unnamed", marks=pytest.mark.skipif(
    not hasattr(os, "O_TMPFILE"), reason="files without a name are Linux's"))  # fmt: skip
posix = pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")


def killed(target: Path, kind: str) -> Path:
    """Start a process that writes to ``target``, end it in the middle; gives its scratch folder."""
    command = [sys.executable, "-c", WRITER, str(target), kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().decode().strip())
        process.send_signal(signal.SIGKILL)
    return folder


@posix
@pytest.mark.parametrize("kind", [unnamed, "named"])
def test_kill_leaves_nothing_that_stays(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.csv"
    target.write_bytes(b"as it was")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    folder = killed(target, kind)
    assert target.read_bytes() == b"as it was"
    assert folder.is_dir()
    hidden = {path.name for path in tmp_path.iterdir()} - {target.name, folder.name}
    assert len(hidden) == (kind == "named")
    if kind == "named":
        monkeypatch.setattr(pending, "_unnamed", lambda _folder: None)
    with Sink.open(target, force=True) as sink, scratch_folder("test"):
        sink.write(b"new")
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("kind", [unnamed, "named"])
@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "-x y\n\u202e.csv"])
def test_a_file_appears_whole_with_the_usual_mode(
    kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "named":
        monkeypatch.setattr(pending, "_unnamed", lambda _folder: None)
    target = tmp_path / name
    plain = tmp_path / "plain"
    plain.touch()
    for force in (False, True):
        with Sink.open(target, force=force) as sink:
            sink.write(b"some")
            assert target.exists() == force
        assert target.stat().st_mode == plain.stat().st_mode
        assert target.stat().st_nlink == 1
    sink = Sink.open(target, force=True)
    sink.write(b"other")
    sink.abort()
    assert target.stat().st_nlink == 1
    with pytest.raises(WriteRefusedError, match="exists"):
        Sink.open(target)
    late = tmp_path / "late"
    with pytest.raises(WriteRefusedError, match="exists"), Sink.open(late) as sink:
        late.write_bytes(b"of another program")
    assert late.read_bytes() == b"of another program"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "late", "plain"])


def test_leftovers_of_others_stay(tmp_path: Path) -> None:
    machine = pending._machine()
    ours = tmp_path / f".o.fxf-{machine}-{os.getpid()}-00000000"
    stays = [
        ours,
        tmp_path / f".o.fxf-ffffffff-{2**22 + 1}-00000000",
        tmp_path / f".o.fxf-{machine}-x-00000000",
        tmp_path / f".other.fxf-{machine}-{2**22 + 1}-00000000",
        tmp_path / ".o",
    ]
    goes = tmp_path / f".o.fxf-{machine}-{2**22 + 1}-00000000"
    for path in (*stays, goes):
        path.touch()
    remove_leftovers(tmp_path, ".o")
    assert sorted(tmp_path.iterdir()) == sorted(stays)

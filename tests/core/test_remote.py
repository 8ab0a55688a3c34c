"""Addresses: read and written through fsspec, with the errors of paths."""

from __future__ import annotations

import functools
import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

import fxframework as fxf
from fxframework.errors import LimitError, UnreadableError, WriteRefusedError
from fxframework.io import pending
from fxframework.io.pending import is_left
from fxframework.io.source import Source
from fxframework.testing.cli import run_cli

fsspec = pytest.importorskip("fsspec")
EXAMPLE = Path(__file__).parents[2] / "examples" / "magic_trace_sample.fxt.gz"


@pytest.fixture
def memory() -> Iterator[str]:
    fs = fsspec.filesystem("memory")
    yield "memory://box"
    fs.rm("/box", recursive=True)


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    """A server of the folder of examples."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Nothing."""

    handler = functools.partial(Quiet, directory=str(EXAMPLE.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_an_address_reads_as_the_file_does(memory: str, web: str) -> None:
    fsspec.filesystem("memory").pipe_file("/box/a.fxt.gz", EXAMPLE.read_bytes())
    with fxf.open(EXAMPLE) as capture:
        expected, size = capture.summary(), capture.source.size
    for uri in (f"{memory}/a.fxt.gz", EXAMPLE.as_uri(), f"{web}/{EXAMPLE.name}"):
        with fxf.open(uri) as capture:
            assert capture.summary() == expected, uri
            assert capture.source.size == size
    assert run_cli("info", f"{web}/{EXAMPLE.name}").exit_code == 0


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_what_is_written_is_whole_or_not_there(memory: str, suffix: str, tmp_path: Path) -> None:
    uri = f"{memory}/new/folder/out.jsonl{suffix}"
    with fxf.open(EXAMPLE) as capture:
        part = capture.source.read(0, 4000)
    plain = tmp_path / "plain.jsonl"
    fxf.convert(part, plain)
    report = fxf.convert(part, uri)
    assert report.nbytes == fsspec.filesystem("memory").size(f"/box/new/folder/out.jsonl{suffix}")
    local = tmp_path / f"local.jsonl{suffix}"
    fxf.convert(part, local.as_uri())
    assert Source.open(local).read(0, 1 << 24) == plain.read_bytes()
    stored = Source.open(fsspec.filesystem("memory").cat_file(f"/box/new/folder/out.jsonl{suffix}"))
    assert stored.read(0, stored.size) == plain.read_bytes()
    with pytest.raises(WriteRefusedError, match="already exists"):
        fxf.convert(part, uri)
    fxf.convert(part, uri, force=True)
    sink = fxf.Host().sink(f"{memory}/never")
    sink.write(b"x")
    sink.abort()
    assert not fsspec.filesystem("memory").exists("/box/never")


class Shelf(fsspec.get_filesystem_class("memory")):  # type: ignore[misc]
    """A file system on which a file shows while it is sent, as on a disk."""

    protocol = "shelf"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    sending: ClassVar[Callable[[str], None]]

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        stripped: str = super()._strip_protocol(path.replace("shelf://", "memory://"))
        return stripped

    def put_file(self, lpath: str, rpath: str, **options: Any) -> None:
        super().put_file(lpath, rpath, **options)
        Shelf.sending(rpath)


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    fsspec.register_implementation("shelf", Shelf, clobber=True)
    monkeypatch.setattr(Shelf, "store", {})
    monkeypatch.setattr(Shelf, "pseudo_dirs", [""])
    monkeypatch.setattr(Shelf, "sending", lambda _path: None, raising=False)
    fs: Shelf = fsspec.filesystem("shelf")
    return fs


@pytest.mark.parametrize("packed", ["", ".gz"])
def test_a_file_that_shows_while_it_is_sent_is_hidden_till_it_is_whole(
    packed: str, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, path = f"shelf://box/out{packed}", f"/box/out{packed}"
    shown: list[list[str]] = []

    def look(_path: str) -> None:
        shown.append(shelf.ls("/box", detail=False))

    monkeypatch.setattr(Shelf, "sending", look)
    for force in (False, True):
        with fxf.Host().sink(uri, force=force) as sink:
            sink.write(b"some")
        ((*_, hidden),) = [[path for path in each if "/.out" in path] for each in shown]
        assert is_left(hidden.rpartition("/")[2], f".out{packed}") is False  # we are alive
        assert hidden in shown[-1]
        assert (path in shown[-1]) == force
        shown.clear()
        assert shelf.ls("/box", detail=False) == [path]
        assert Source.open(shelf.cat_file(path)).read(0, 9) == b"some"

    def broken(_path: str) -> None:
        raise OSError("the line is cut")

    monkeypatch.setattr(Shelf, "sending", broken)
    with pytest.raises(WriteRefusedError, match="cut"), fxf.Host().sink("shelf://box/b") as sink:
        sink.write(b"other")
    assert shelf.ls("/box", detail=False) == [path]


def test_what_ended_processes_left_on_a_file_system_is_removed(shelf: Shelf) -> None:
    machine, dead = pending._machine(), 2**22 + 1
    stays = [f"/box/.out.fxf-ffffffff-{dead}-00000000", f"/box/.o.fxf-{machine}-{dead}-00000000",
             f"/box/.out.fxf-{machine}-{os.getpid()}-00000000"]  # fmt: skip
    goes = [f"/box/.out.fxf-{machine}-{dead}-00000000", f"/box/.out.fxf-ffffffff-{dead}-00000001"]
    for path in (*stays, *goes):
        shelf.pipe_file(path, b"left")
    shelf.store[goes[1]].modified = datetime.now(UTC) - timedelta(days=2)
    with fxf.Host().sink("shelf://box/out") as sink:
        sink.write(b"some")
    assert sorted(shelf.ls("/box", detail=False)) == sorted([*stays, "/box/out"])


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
def test_kill_leaves_nothing_of_a_remote_output(tmp_path: Path) -> None:
    writer = (
        "import sys\nfrom fxframework import Host\nsink = Host().sink('memory://a/out')\n"
        "sink.write(b'x' * 10_000_000)\nprint(flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", writer], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
    left = list(tmp_path.iterdir())
    assert all(is_left(path.name, ".fxf-sink") for path in left)
    assert len(left) <= (not hasattr(os, "O_TMPFILE"))


def test_what_cannot_be_reached_is_a_coded_error(memory: str, web: str) -> None:
    for uri in (f"{memory}/none.fxt", f"{web}/none.fxt", "http://127.0.0.1:9/x.fxt"):
        with pytest.raises(UnreadableError, match="cannot fetch") as caught:
            fxf.open(uri)
        assert (caught.value.path, bool(caught.value.remedy)) == (uri, True)
    with pytest.raises(UnreadableError, match="no plugin opens"):
        fxf.open("sack://a/b")
    with pytest.raises(WriteRefusedError, match="cannot send"), fxf.Host().sink(f"{web}/a") as sink:
        sink.write(b"x")
    fsspec.filesystem("memory").pipe_file("/box/big.fxt", bytes(100))
    with pytest.raises(LimitError, match="more than 10 bytes"):
        fxf.open(f"{memory}/big.fxt", max_unpacked=10)

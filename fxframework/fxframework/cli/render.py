"""Rendering of all output. Results go to stdout, everything else to stderr.

Output is UTF-8 whatever the locale.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from fxframework import rules
from fxframework.cli.progress import ERASE, Working, spinning
from fxframework.cli.settings import Settings
from fxframework.cli.text import fitted, hex_context, json_escaped, place, safe_lines
from fxframework.errors import (
    FxError,
    OutputError,
    Rule,
    Severity,
    StrictError,
    readable_name,
    unexpected,
)
from fxframework.findings import singular
from fxframework.kit.shown import amount, columns, cut, printable

if TYPE_CHECKING:
    from fxframework.host import Host
    from fxframework.io.budget import Budget
    from fxframework.io.source import Source
    from fxframework.model.capture import Capture
    from fxframework.model.diagnostics import Diagnostic

VERSION = 1
"""Version of the documents that ``--json`` prints."""
STDOUT = "<stdout>"
ITEMS = 1 << 10
"""Items of an array that are printed at a time."""
UNLIMITED = 1 << 30
"""Width of a file or a pipe."""
COLOURS = {
    Severity.INFO: "blue",
    Severity.WARNING: "yellow",
    Severity.DATA_LOSS: "red",
    Severity.ERROR: "red",
}


@contextlib.contextmanager
def _stdout_errors() -> Iterator[None]:
    """Convert an OSError of standard output to OutputError, except a broken pipe."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error, path=STDOUT) from error


class Screen:
    """The output of a run; knows the settings and which streams are terminals."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.out_is_terminal = sys.stdout.isatty()
        self.err_is_terminal = sys.stderr.isatty()
        self.budget: Budget | None = None
        """The budget of the command, against which its output counts."""
        self._written = 0
        self._warned: set[tuple[str, str]] = set()
        self._spins = False
        """Whether progress may be shown on stderr."""

    @property
    def width(self) -> int:
        """Width of the terminal; unlimited if stdout is not a terminal."""
        return shutil.get_terminal_size().columns if self.out_is_terminal else UNLIMITED

    # --- stdout ---

    def write(self, data: bytes) -> None:
        """Write bytes to stdout. Raises LimitError beyond the budget."""
        self._written += len(data)
        if self.budget is not None:
            self.budget.check_output(self._written, path=STDOUT)
        with _stdout_errors():
            sys.stdout.buffer.write(data)

    def print(self, text: str = "") -> None:
        """Write a line to stdout."""
        text = safe_lines(text, colours=self.coloured)
        self.write(text.encode("utf-8", "surrogateescape") + b"\n")

    def flush(self) -> None:
        """Flush stdout."""
        with _stdout_errors():
            sys.stdout.flush()

    def json(self, command: str, body: Mapping[str, Any]) -> None:
        """Print a JSON document: ``{"fxframework": command, "version": 1, …}``.

        The items of an iterator are printed as an array, some at a time.
        """
        for piece in _json_pieces({"fxframework": command, "version": VERSION, **body}):
            self.write(self._safe_json(piece))

    def json_line(self, row: Any) -> bytes:
        """Return a line of JSON."""
        import orjson

        return self._safe_json(orjson.dumps(row)) + b"\n"

    def _safe_json(self, text: bytes) -> bytes:
        """Escape the control characters of JSON before a terminal."""
        if self.out_is_terminal:
            return json_escaped(text)
        return text

    def paint(self, text: str, **style: Any) -> str:
        """Return text for stdout, styled if colours are on."""
        if self.coloured:
            return click.style(text, **style)
        return text

    @property
    def coloured(self) -> bool:
        """Whether colours are on for stdout."""
        return self._coloured(self.out_is_terminal)

    def _coloured(self, terminal: bool) -> bool:
        if self.settings.color == "auto":
            return terminal and not os.environ.get("NO_COLOR")
        return self.settings.color == "always"

    def table(
        self,
        rows: Iterable[Sequence[str]],
        numeric: Sequence[bool],
        *,
        name: int | None = None,
        spare: Sequence[str] = (),
        fit: bool = False,
    ) -> None:
        """Print rows in aligned columns, the first row as a heading, as ``columns`` does.

        ``fit`` cuts long lines at their end.
        """
        for number, line in enumerate(columns(rows, numeric, self.width, name=name, spare=spare)):
            if fit:
                line = cut(line, self.width)
            if number == 0:
                line = self.paint(line, bold=True)
            self.print(line)

    def wrapped_columns(self, rows: Sequence[Sequence[str]], *, indent: int = 2) -> None:
        """Print short rows in aligned columns, wrapped to the width of the terminal."""
        for line in fitted(rows, self.width - indent):
            self.print(" " * indent + line)

    # --- stderr ---

    def say(self, text: str) -> None:
        """Write a line to stderr, in place of the progress that is shown there."""
        text = safe_lines(text, colours=self._coloured(self.err_is_terminal))
        if self._spins:
            text = f"\r{ERASE}{text}"
        click.echo(readable_name(text), file=sys.stderr, color=True)

    def note(self, text: str) -> None:
        """Print a note, unless -q is given."""
        if not self.settings.quiet:
            self.say(f"{self._painted('note', fg='blue', bold=True)}: {printable(text)}")

    def detail(self, text: str) -> None:
        """Print a note if -v is given."""
        if self.settings.verbose:
            self.note(text)

    def warn(self, code: str, text: str) -> None:
        """Print a warning with the code of a rule, once."""
        if (code, text) not in self._warned:
            self._warned.add((code, text))
            head = self._painted(f"warning[{code}]", fg="yellow", bold=True)
            self.say(f"{head}: {printable(text)}")

    def error(self, error: FxError, *, stops: bool = True) -> None:
        """Print an error: what, where, what to do.

        ``stops`` says whether it stops the command, and not only one of many inputs.
        """
        # With --strict, the code is that of the finding, but the consequence is to stop.
        rule_code = rules.STRICT.code if isinstance(error, StrictError) else error.code
        rule = rules.RULES.get(rule_code)
        head = self._painted(f"error[{error.code}]", fg="red", bold=True)
        message, *further_lines = error.message.splitlines() or [""]
        lines = [f"{head}: {printable(message)}"]
        lines += [f"   | {printable(line)}" for line in further_lines if line]
        if error.path is not None:
            lines.append(f"  --> {place(error.path, error.offset, error.record)}")
        if rule is not None and stops:
            lines.append(f"  = {rule.ours}")
        if error.remedy:
            lines.append(f"  = {printable(error.remedy)}")
        self.say("\n".join(lines))

    def bug(self, error: BaseException, host: Host | None) -> None:
        """Print an unexpected exception and whose code raised it; with -v, also the traceback."""
        plugin_error = None if host is None else host.blame(error)
        self.error(plugin_error or unexpected(error))
        if self.settings.verbose:
            import traceback

            self.say("".join(traceback.format_exception(error)).rstrip())

    def skipped(self, counts: Mapping[str, int]) -> None:
        """Print how many slices were skipped, by the reason, if there are any."""
        if counts:
            reasons = ", ".join(f"{count:,} {what}" for what, count in counts.items())
            self.note(f"left out: {singular(reasons)}")

    def losses(
        self, name: str, counts: Mapping[str, int], severity: Callable[[str], Severity]
    ) -> None:
        """Print in one line that data was lost, with counts by code; with -v, of all findings."""
        least = Severity.INFO if self.settings.verbose else Severity.DATA_LOSS
        counts = {code: count for code, count in counts.items() if severity(code) >= least}
        text = ", ".join(f"{code} ×{count:,}" for code, count in sorted(counts.items()))
        self.note(
            f"{name}: {amount(sum(counts.values()), 'finding')}, data was lost ({text}); "
            "`fxf verify` lists them"
        )

    def _painted(self, text: str, **style: Any) -> str:
        if self._coloured(self.err_is_terminal):
            return click.style(text, **style)
        return text

    # --- findings ---

    def finding(
        self, finding: Diagnostic, rule: Rule, capture: Capture, *, explained: bool
    ) -> None:
        """Print a finding: its place, the bytes there, and, if ``explained``, its rule."""
        colour = COLOURS[finding.severity]
        head = self.paint(f"{finding.severity.word}[{finding.code}]", fg=colour, bold=True)
        self.print(f"{head}: {printable(finding.message)}")
        self.print(f"  --> {place(capture.name, finding.offset, finding.record)}")
        if finding.offset is not None and finding.code not in rules.RULES:
            for line in hex_context(capture.source, finding.offset):
                self.print(f"   {line}")
        if explained:
            advice = rule.advice(capture.name, finding.offset, explains=explains(capture))
            for line in (rule.ours, advice):
                if line:
                    self.print(f"  = {printable(line)}")

    # --- progress ---

    @contextlib.contextmanager
    def working(
        self, label: str, *inputs: Source, noun: str = "", prints: bool = False
    ) -> Iterator[Working]:
        """Show progress on a terminal, after half a second: of reading ``inputs``, if given.

        If the work ``prints`` to a terminal, what it prints is progress enough.
        """
        working = Working(printable(label), noun, inputs)
        if not self.err_is_terminal or self.settings.quiet or (prints and self.out_is_terminal):
            yield working
            return
        spun_before = self._spins
        self._spins = True
        try:
            with spinning(working, coloured=self._coloured(self.err_is_terminal)):
                yield working
        finally:
            self._spins = spun_before


def _json_pieces(document: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield a document as indented JSON, piece by piece."""
    between = b"{"
    for key, value in document.items():
        yield between + b"\n  " + _indented(key) + b": "
        between = b","
        if not isinstance(value, Iterator):
            yield _indented(value)
            continue
        before_items = b"["
        while items := list(itertools.islice(value, ITEMS)):
            # Without the opening bracket, and the last line, which has the closing one.
            yield before_items + _indented(items)[1:-4]
            before_items = b","
        is_empty = before_items == b"["
        yield b"[]" if is_empty else b"\n  ]"
    yield b"\n}\n"


def _indented(value: Any) -> bytes:
    """Return a value as JSON, as it is within a document."""
    import orjson

    from fxframework.kit.json_fields import encoded

    return encoded(value, orjson.OPT_INDENT_2).replace(b"\n", b"\n  ")


def explains(capture: Capture) -> bool:
    """Return whether the format of a capture explains its bytes, as `fxf explain` shows them."""
    host = capture.request.host
    reader = None if host is None else host.readers.get(capture.format)
    return reader is not None and reader.explain is not None

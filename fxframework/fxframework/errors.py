"""Errors: severities, rules and catalogues of findings, exceptions and exit codes.

The lowest layer: it imports no other module of the framework.
"""

from __future__ import annotations

import difflib
import errno
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from types import FrameType
from typing import TypeVar

import attrs

__all__ = [
    "FRAMEWORK_RULES",
    "BadCallError",
    "Catalogue",
    "ExitCode",
    "FxError",
    "LimitError",
    "MissingExtraError",
    "NoReaderError",
    "OutputError",
    "PluginError",
    "Rule",
    "Severity",
    "StrictError",
    "UnreadableError",
    "UsageError",
    "WriteRefusedError",
    "did_you_mean",
    "install_line",
    "look_up",
]

T = TypeVar("T")


class Severity(IntEnum):
    """How much a finding matters."""

    INFO = 0
    """Worth knowing; changes no exit status."""
    WARNING = 1
    """Violates the format; nothing was lost."""
    DATA_LOSS = 2
    """Some data could not be read."""
    ERROR = 3
    """Reading or writing cannot continue."""

    @property
    def word(self) -> str:
        """The name in messages: ``data loss`` for DATA_LOSS."""
        return self.key.replace("_", " ")

    @property
    def key(self) -> str:
        """The name in JSON and in tables: ``data_loss`` for DATA_LOSS."""
        return self.name.lower()


class ExitCode(IntEnum):
    """Exit statuses of the command line."""

    OK = 0
    """Success."""
    FAILED = 1
    """An error stopped the command."""
    USAGE = 2
    """The request was invalid."""
    FINDINGS = 3
    """The command completed, but data was lost; for ``verify``: there are findings."""
    NO_READER = 4
    """No reader, or more than one, claims the input."""
    MISSING_EXTRA = 5
    """An optional package is missing."""


@attrs.frozen
class Rule:
    """A rule of a format's catalogue, as shown by `fxf explain CODE` and in the docs."""

    code: str
    """The format's prefix and a number, such as ``FXT0104``; it never changes."""
    severity: Severity
    """The severity of a finding by this rule."""
    title: str
    """The finding in a few words, without values."""
    section: str
    """The section of the format's document that requires it."""
    rule: str
    """What the format requires."""
    readers: str = attrs.field(default="", kw_only=True)
    """What the reference readers do."""
    ours: str = attrs.field(default="", kw_only=True)
    """What this reader does."""
    remedy: str = attrs.field(default="", kw_only=True)
    """What the user can do."""

    def advice(self, name: str, offset: int | None) -> str:
        """Return what to do about a finding at an offset of a file: the remedy, or the rule."""
        if self.remedy or offset is None or name == "-":
            return self.remedy or self.rule
        place = shlex.quote(f"{name}@{offset:#x}")
        return f"{self.rule} `fxf explain {place}` shows what is there."


class Catalogue(Mapping[str, Rule]):
    """A format's rules by code. Raises ValueError for two rules with the same code."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules: dict[str, Rule] = {}
        for rule in rules:
            if rule.code in self._rules:
                msg = f"rule {rule.code} is declared twice"
                raise ValueError(msg)
            self._rules[rule.code] = rule

    def __getitem__(self, code: str) -> Rule:
        return self._rules[code]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def refusal(self, code: str, message: str) -> WriteRefusedError:
        """Return the error for a value that cannot be written, with the remedy of its rule."""
        return WriteRefusedError(message, code=code, remedy=self._rules[code].remedy)

    def refusals(self, prefix: str) -> Callable[[str, str], WriteRefusedError]:
        """Return ``refusal`` as a function of the code's number (text) and a message."""
        return lambda number, message: self.refusal(prefix + number, message)


class FxError(Exception):
    """An error that stops a command; says what is wrong, where, and what to do.

    ``code`` is that of a rule; ``path``, ``offset`` (bytes) and ``record`` (index) are the place,
    None if unknown; ``remedy`` says what the user can do.
    """

    exit_code: ExitCode = ExitCode.FAILED
    """The exit status of the stopped command."""
    default_code = "FXF0001"
    """The default of ``code``."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        path: str | None = None,
        offset: int | None = None,
        record: int | None = None,
        remedy: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.path = path
        self.offset = offset
        self.record = record
        self.remedy = remedy

    def __reduce__(self) -> tuple[object, ...]:
        # Subclasses have other arguments, so pickle the attributes.
        return _rebuilt, (type(self), self.args, self.__dict__)

    def __str__(self) -> str:
        where = "" if self.path is None else f"{self.path}: "
        at = "" if self.offset is None else f" (at byte {self.offset})"
        return f"{where}{self.message}{at}"


def _rebuilt(kind: type[FxError], args: tuple[object, ...], fields: dict[str, object]) -> FxError:
    """Rebuild a pickled error."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


class UnreadableError(FxError):
    """The input cannot be opened, or nothing in it can be read (exit 1)."""

    default_code = "FXF0001"


class WriteRefusedError(FxError):
    """The format or exporter cannot represent a value; none of it was written (exit 1)."""

    default_code = "FXF0002"


class LimitError(FxError):
    """A limit was reached; the user can raise it (exit 1)."""

    default_code = "FXF0003"


class StrictError(FxError):
    """The first finding of DATA_LOSS or worse with ``--strict`` (exit 1)."""

    default_code = "FXF0004"


class UsageError(FxError):
    """The request names something that does not exist, or contradicts itself (exit 2)."""

    exit_code = ExitCode.USAGE
    default_code = "FXF0005"


class NoReaderError(FxError):
    """No reader recognizes the input, or several do equally well (exit 4)."""

    exit_code = ExitCode.NO_READER
    default_code = "FXF0006"


class MissingExtraError(FxError):
    """An optional package is not installed (exit 5); the remedy is the command that installs it.

    ``extra`` is the extra of fxframework that contains the ``package``.
    """

    exit_code = ExitCode.MISSING_EXTRA
    default_code = "FXF0007"

    def __init__(self, package: str, extra: str, *, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {package}, which is not installed",
            remedy=install_line(extra, package),
        )
        self.extra = extra

    def __str__(self) -> str:
        return f"{super().__str__()}; to install it: {self.remedy}"


class OutputError(FxError):
    """Writing the output failed, for example because the disk is full (exit 1)."""

    default_code = "FXF0010"

    def __init__(self, error: OSError, *, path: str) -> None:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
        super().__init__(
            f"cannot write: {error.strerror or error}",
            path=path,
            remedy="free some space, or write to another disk"
            if full
            else "check the path, its permissions and the disk, or write to another folder",
        )


class TemporaryFileError(FxError):
    """A temporary file cannot be made or written, for example because its disk is full (exit 1)."""

    default_code = "FXF0011"

    def __init__(self, error: OSError, *, folder: str) -> None:
        super().__init__(
            f"cannot write a temporary file: {error.strerror or error}",
            path=folder,
            remedy="free some space there, or set TMPDIR to a folder on another disk",
        )


class PluginError(FxError):
    """A plugin is faulty: its code raised an exception or lacks something required (exit 1)."""

    default_code = "FXF0009"


class BadCallError(PluginError, ValueError, LookupError):
    """The calling code passed an invalid value; the message names the calling module and line.

    Raised for programming mistakes, in a plugin or in a program that uses fxframework.
    """

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(f"{message} (called in {_calling_place()})", remedy=remedy)


def _calling_place() -> str:
    """Return module and line of the innermost caller outside of fxframework."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 (documented; `inspect` uses it)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", "?"))
        if module.partition(".")[0] != "fxframework":
            return f"{module}, line {frame.f_lineno}"
        frame = frame.f_back
    return "fxframework"


def install_line(extra: str, package: str) -> str:
    """Return the command that installs the packages of an extra for this interpreter.

    The packages are those declared by the installed distribution; only ``package`` if it does not
    declare the extra. The command does not depend on where fxframework was installed from.
    """
    packages = _packages_of(extra) or [package]
    return shlex.join([sys.executable or "python3", "-m", "pip", "install", *packages])


def _packages_of(extra: str) -> list[str]:
    from importlib import metadata

    try:
        requirements = metadata.requires("fxframework") or []
    except metadata.PackageNotFoundError:
        return []
    packages: list[str] = []
    for requirement in requirements:
        what, _, marker = requirement.partition(";")
        if not re.search(rf"extra\s*==\s*['\"]{re.escape(extra)}['\"]", marker):
            continue
        own = re.fullmatch(r"fxframework\[([\w,-]+)\]", what.strip())
        for part in own[1].split(",") if own else ():
            packages += _packages_of(part)
        if not own:
            packages.append(what.strip())
    return packages


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` with the nearest known word, or the empty string."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def look_up(known: Mapping[str, T], name: str, noun: str) -> T:
    """Return the value for a name. Raises UsageError, with the nearest name, if there is none."""
    if name in known:
        return known[name]
    raise UsageError(
        f"there is no {noun} {name!r}{did_you_mean(name, known)}",
        remedy=f"there are: {', '.join(sorted(known)) or 'none'}",
    )


FRAMEWORK_RULES = Catalogue(
    [
        Rule(
            code="FXF0000",
            severity=Severity.ERROR,
            title="a bug",
            rule="Whatever the input, a command ends with a result or a coded error.",
            section="docs, Errors",
            ours="The command stops with exit status 1; an existing output file stays as it is.",
            remedy="Report it with the input, or its first kilobytes, and what `-v` prints.",
        ),
        Rule(
            code="FXF0001",
            severity=Severity.ERROR,
            title="the input cannot be read",
            rule="An input is a file, a pipe or bytes that can be opened and that hold at least "
            "one sound record of the format asked for.",
            section="docs, Exit statuses",
            ours="The command stops with exit status 1; nothing is written.",
            remedy="Check the path and the format; `fxf cat --records` and `fxf convert IN "
            "OUT.jsonl` keep any bytes, as damaged records.",
        ),
        Rule(
            code="FXF0002",
            severity=Severity.ERROR,
            title="the output cannot hold this",
            rule="A writer or exporter refuses values that its format cannot hold, before it "
            "writes anything.",
            section="docs, Command line",
            ours="Nothing is written; an existing file stays as it is.",
            remedy="Choose another exporter or file name; `--force` allows an existing file to be "
            "replaced.",
        ),
        Rule(
            code="FXF0003",
            severity=Severity.ERROR,
            title="a limit was reached",
            rule="Limits keep memory and time in proportion to the input.",
            section="docs, Limits",
            ours="The command stops, or the finding says what was left out.",
            remedy="Raise the named limit with `-o limit=value`.",
        ),
        Rule(
            code="FXF0004",
            severity=Severity.ERROR,
            title="stopped at the first loss",
            rule="With --strict, the first finding of data loss or worse stops the reader.",
            section="docs, Command line",
            ours="The command stops with exit status 1; nothing is written.",
            remedy="Omit --strict to keep the sound records.",
        ),
        Rule(
            code="FXF0005",
            severity=Severity.ERROR,
            title="an invalid request",
            rule="Commands, options, tables, formats and exporters have the names that "
            "`fxf plugins` and `fxf --help` list.",
            section="docs, Command line",
            ours="Nothing is read or written; exit status 2.",
            remedy="See `fxf COMMAND --help`.",
        ),
        Rule(
            code="FXF0006",
            severity=Severity.ERROR,
            title="no reader, or more than one",
            rule="Exactly one reader must claim the input with the greatest confidence.",
            section="docs, Plugins",
            ours="Nothing is read; exit status 4.",
            remedy="Name the format with -f NAME; `fxf plugins` lists the names.",
        ),
        Rule(
            code="FXF0007",
            severity=Severity.ERROR,
            title="an optional package is missing",
            rule="Some exporters and commands need a package that is not installed by default.",
            section="docs, Extras",
            ours="Nothing is written; exit status 5.",
            remedy="Run the install line that the message gives.",
        ),
        Rule(
            code="FXF0008",
            severity=Severity.WARNING,
            title="a plugin failed",
            rule="A plugin can be imported, implements only hooks that exist, and registers no "
            "name that another plugin has.",
            section="docs, Plugins",
            ours="The failed part is left out and listed; everything else works.",
            remedy="See `fxf plugins`; FXF_DISABLE_PLUGINS=NAME leaves it out silently.",
        ),
        Rule(
            code="FXF0009",
            severity=Severity.ERROR,
            title="a mistake in a plugin",
            rule="The code of a plugin raises only coded errors, and passes values that fit.",
            section="docs, Plugins",
            ours="The command stops with exit status 1; an existing output file stays as it is.",
            remedy="Report it to the author of the plugin that the message names; `-v` prints the "
            "traceback.",
        ),
        Rule(
            code="FXF0010",
            severity=Severity.ERROR,
            title="the output cannot be written",
            rule="The disk has room for the output.",
            section="docs, Command line",
            ours="The command stops with exit status 1; an existing file stays as it is.",
            remedy="Free some space, or write to another disk.",
        ),
        Rule(
            code="FXF0011",
            severity=Severity.ERROR,
            title="a temporary file cannot be written",
            rule="The folder of temporary files has room for what does not fit in memory.",
            section="docs, Command line",
            ours="The command stops with exit status 1; an existing output file stays as it is.",
            remedy="Free some space there, or set TMPDIR to a folder on another disk.",
        ),
        Rule(
            code="FXF0101",
            severity=Severity.DATA_LOSS,
            title="the compressed stream is damaged",
            rule="A gzip or zstd input unpacks to its end with matching length and checksum.",
            section="RFC 1952, RFC 8878",
            readers="gzip(1), zstd(1) and Perfetto stop at the damage.",
            ours="The data before the damage is read.",
            remedy="Fetch the file again; `fxf convert IN OUT` writes the recovered part.",
        ),
        Rule(
            code="FXF0102",
            severity=Severity.DATA_LOSS,
            title="the input is empty",
            rule="A capture holds at least one byte.",
            section="docs, Exit statuses",
            ours="The capture is empty.",
            remedy="Check that the program that writes the file flushed or closed it.",
        ),
        Rule(
            code="FXF0103",
            severity=Severity.DATA_LOSS,
            title="invalid line in a records file",
            rule="Each line of a .jsonl records file is one JSON object with a known `record`, "
            "after one header line.",
            section="docs, Records",
            ours="The line is skipped; the others are read.",
            remedy="Correct or remove the line at that offset.",
        ),
        Rule(
            code="FXF0104",
            severity=Severity.INFO,
            title="more findings than the limit",
            rule="Each code keeps a bounded number of findings; the counts stay exact.",
            section="docs, Limits",
            ours="Further findings of that code are counted, not listed.",
            remedy="Raise `-o max_findings=N` to list more.",
        ),
        Rule(
            code="FXF0105",
            severity=Severity.WARNING,
            title="option of a records file ignored",
            rule="The header of a records file sets only options about the bytes of the capture. "
            "Files, patterns and sizes come from the command line.",
            section="docs, Records",
            ours="The option keeps its default.",
            remedy="Write the capture in its own format first (`fxf convert IN.jsonl OUT`), then "
            "give the option with -o NAME=VALUE.",
        ),
        Rule(
            code="FXF0106",
            severity=Severity.WARNING,
            title="clocks that cannot be related",
            rule="Captures on one timeline are aligned by a clock that both know: the time of day, "
            "the boot clock or the monotonic clock.",
            section="docs, One timeline",
            ours="Each capture keeps its own times, counted from its own 0.",
            remedy="Give `--align NAME:offset=NS`, or a moment on both clocks: "
            "`--align NAME:FROM=TO`.",
        ),
    ]
)
"""The findings and errors of the framework itself (docs/errors.md)."""

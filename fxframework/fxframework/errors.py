"""Errors: exceptions with the code of a rule, exit statuses, and hints for messages.

``Catalogue``, ``Refusals``, ``Rule`` and ``Severity`` are here too, for authors of plugins.
"""

from __future__ import annotations

import difflib
import errno
import inspect
import re
import reprlib
import shlex
import sys
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import ClassVar, TypeVar

from fxframework import rules
from fxframework.findings import Catalogue, Refusals, Rule, Severity

__all__ = [
    "BadCallError",
    "BadTypeError",
    "Catalogue",
    "ClosedError",
    "ExitCode",
    "FxError",
    "LimitError",
    "MissingExtraError",
    "NoReaderError",
    "NotACaptureError",
    "OutputError",
    "PluginError",
    "Refusals",
    "Rule",
    "Severity",
    "StrictError",
    "UnreadableError",
    "UsageError",
    "WriteRefusedError",
    "checked_type",
    "did_you_mean",
    "install_line",
    "look_up",
    "missing_packages",
    "one_line",
    "out_of_descriptors",
    "readable_name",
    "refusal",
    "unexpected",
]

T = TypeVar("T")
LONGEST_WORD = 200
"""Characters of a word that may be a misspelt name; comparing longer ones takes long."""
FEWER_FILES = (
    "close captures that are no longer used (close(), or a `with` block), or raise the limit on "
    "open files (`ulimit -n`)"
)
"""The remedy where too many files are open."""
SYSTEM = "check the path, the permissions and the disk"
"""The remedy for errors of the operating system."""


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


class FxError(Exception):
    """An error that stops a command; says what is wrong, where, and what to do.

    ``code`` is that of ``rule``, by default of the class; ``path``, ``offset`` (bytes) and
    ``record`` (index) are the place, None if unknown; ``remedy`` says what the user can do, by
    default what the given rule says.
    """

    exit_code: ExitCode = ExitCode.FAILED
    """The exit status of the stopped command."""
    default_rule: ClassVar[Rule] = rules.UNREADABLE
    """The rule of an error that names no other."""

    def __init__(
        self,
        message: str,
        *,
        rule: Rule | None = None,
        path: str | None = None,
        offset: int | None = None,
        record: int | None = None,
        remedy: str = "",
    ) -> None:
        super().__init__(message)
        if rule is not None:
            remedy = remedy or rule.remedy
        else:
            rule = self.default_rule
        self.message = message
        self.code = rule.code
        self.path = path
        self.offset = offset
        self.record = record
        self.remedy = remedy

    def __reduce__(self) -> tuple[object, ...]:
        # Subclasses have other arguments, so pickle the attributes.
        return _rebuilt, (type(self), self.args, self.__dict__)

    def __str__(self) -> str:
        text = self.message
        if self.path is not None:
            text = f"{self.path}: {text}"
        if self.offset is not None:
            text = f"{text} (at byte {self.offset})"
        return text


def _rebuilt(
    error_type: type[FxError], args: tuple[object, ...], attributes: dict[str, object]
) -> FxError:
    """Rebuild a pickled error."""
    error = error_type.__new__(error_type)
    error.args = args
    error.__dict__.update(attributes)
    return error


def one_line(error: BaseException) -> str:
    """Format an exception in one line."""
    name = type(error).__name__
    text = " ".join(str(error).split())
    return f"{name}: {text}" if text else name


def unexpected(error: BaseException) -> FxError:
    """Return the error to report for one of Python: too little memory, the system, or a bug."""
    if isinstance(error, MemoryError):
        remedy = "-o max_memory=BYTES"
        return FxError("there is not enough memory", rule=rules.LIMIT_REACHED, remedy=remedy)
    if isinstance(error, OSError):
        path = None if error.filename is None else str(error.filename)
        remedy = FEWER_FILES if out_of_descriptors(error) else SYSTEM
        return FxError(error.strerror or str(error), path=path, remedy=remedy)
    return FxError(
        f"this is a bug in fxframework: {type(error).__name__}: {error} ({_raising_place(error)})",
        rule=rules.BUG,
    )


def _raising_place(error: BaseException) -> str:
    """Return the file and line that raised an exception: the innermost ones of its traceback."""
    traceback = error.__traceback__
    if traceback is None:
        return "?:0"
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    file = traceback.tb_frame.f_code.co_filename.rpartition("/")[2]
    return f"{file}:{traceback.tb_lineno}"


class UnreadableError(FxError):
    """The input cannot be opened, or nothing in it can be read (exit 1)."""

    default_rule = rules.UNREADABLE


class WriteRefusedError(FxError):
    """The format or exporter cannot represent a value; none of it was written (exit 1)."""

    default_rule = rules.WRITE_REFUSED


def refusal(rule: Rule, message: str, remedy: str = "") -> WriteRefusedError:
    """Return the error for a value that a rule does not allow to be written.

    ``remedy`` replaces that of the rule.
    """
    return WriteRefusedError(message, rule=rule, remedy=remedy)


class LimitError(FxError):
    """A limit was reached; the user can raise it (exit 1)."""

    default_rule = rules.LIMIT_REACHED


class StrictError(FxError):
    """The first finding of DATA_LOSS or worse with ``--strict`` (exit 1)."""

    default_rule = rules.STRICT


class UsageError(FxError):
    """The request names something that does not exist, or contradicts itself (exit 2)."""

    exit_code = ExitCode.USAGE
    default_rule = rules.INVALID_REQUEST


class ClosedError(UsageError, ValueError):
    """A capture is used after it was closed (exit 2)."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "the capture is closed",
            path=name,
            remedy="use it before close(), inside of its `with` block, or open it again",
        )


class BadTypeError(UsageError, TypeError):
    """An argument of a Python call has the wrong type (exit 2)."""


class NoReaderError(FxError):
    """No reader recognizes the input, or several do equally well (exit 4)."""

    exit_code = ExitCode.NO_READER
    default_rule = rules.NO_READER


class NotACaptureError(NoReaderError):
    """No reader recognizes the input, and no reader has its suffix.

    Commands that read folders skip such files.
    """


class MissingExtraError(FxError):
    """An optional package is not installed (exit 5); the remedy is the command that installs it.

    ``extra`` is the extra of fxframework that contains the ``package``.
    """

    exit_code = ExitCode.MISSING_EXTRA
    default_rule = rules.MISSING_EXTRA

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

    default_rule = rules.OUTPUT_FAILED

    def __init__(self, error: OSError, *, path: str) -> None:
        message = f"cannot write: {error.strerror or error}"
        if error.errno == errno.EBADF:
            message = "standard output is closed"
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            remedy = "free some space, or write to another disk"
        elif out_of_descriptors(error):
            remedy = FEWER_FILES
        else:
            remedy = "check the path, its permissions and the disk, or write to another folder"
        super().__init__(message, path=path, remedy=remedy)


class TemporaryFileError(FxError):
    """A temporary file cannot be made or written, for example because its disk is full (exit 1)."""

    default_rule = rules.TEMPORARY_FILE_FAILED

    def __init__(self, error: OSError, *, folder: str) -> None:
        remedy = "free some space there, or set TMPDIR to a folder on another disk"
        if out_of_descriptors(error):
            remedy = FEWER_FILES
        super().__init__(
            f"cannot write a temporary file: {error.strerror or error}",
            path=folder,
            remedy=remedy,
        )


class PluginError(FxError):
    """A plugin is faulty: its code raised an exception or lacks something required (exit 1)."""

    default_rule = rules.PLUGIN_FAULT


class BadCallError(PluginError, ValueError, LookupError):
    """The calling code passed an invalid value; the message names the calling module and line.

    Raised for programming mistakes, in a plugin or in a program that uses fxframework.
    """

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(f"{message} (called in {_calling_place()})", remedy=remedy)


def _calling_place() -> str:
    """Return module and line of the innermost caller outside of fxframework."""
    frame = inspect.currentframe()
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


def missing_packages(extra: str) -> list[str]:
    """Return the names of the packages of an extra that are not installed."""
    from importlib import metadata

    if not extra:
        return []
    missing = []
    for requirement in _packages_of(extra):
        name = re.split(r"[^\w.-]", requirement)[0]
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            missing.append(name)
    return missing


def _packages_of(extra: str) -> list[str]:
    """Return the requirements of an extra, and of the extras that it consists of."""
    from importlib import metadata

    try:
        requirements = metadata.requires("fxframework") or []
    except metadata.PackageNotFoundError:
        return []
    packages: list[str] = []
    for requirement in requirements:
        package, _, marker = requirement.partition(";")
        package = package.strip()
        if not re.search(rf"extra\s*==\s*['\"]{re.escape(extra)}['\"]", marker):
            continue
        other_extras = re.fullmatch(r"fxframework\[([\w,-]+)\]", package)
        if other_extras is None:
            packages.append(package)
            continue
        for other_extra in other_extras[1].split(","):
            packages += _packages_of(other_extra)
    return packages


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` with the nearest known word, or the empty string.

    Raises BadTypeError for a word that is not a str.
    """
    checked_type(word, str, "a name", "a str")
    if len(word) > LONGEST_WORD:
        return ""
    nearest = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""


def look_up(known: Mapping[str, T], name: str, noun: str) -> T:
    """Return the value for a name. Raises UsageError, with the nearest name, if there is none."""
    if name in known:
        return known[name]
    raise UsageError(
        f"there is no {noun} {name!r}{did_you_mean(name, known)}",
        remedy=f"there are: {', '.join(sorted(known)) or 'none'}",
    )


def checked_type(value: T, kind: type | tuple[type, ...], what: str, wanted: str) -> T:
    """Return ``value``. Raises BadTypeError unless it is of this type, or of one of these.

    ``what`` names the argument in the message, ``wanted`` the type that it must have.
    """
    if isinstance(value, kind):
        return value
    raise BadTypeError(
        f"{what} must be {wanted}, not {type(value).__name__} ({reprlib.repr(value)})",
        remedy=f"give {wanted}",
    )


def out_of_descriptors(error: OSError) -> bool:
    """Return whether an operation failed because too many files are open."""
    return error.errno in {errno.EMFILE, errno.ENFILE}


def readable_name(name: str) -> str:
    r"""Return a name that every output can hold: bytes that are not UTF-8 become ``\xNN``.

    Python has such bytes of file names as surrogates, which UTF-8 cannot encode.
    """
    try:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # other surrogates, in names of Windows
        return name.encode("utf-8", "backslashreplace").decode()

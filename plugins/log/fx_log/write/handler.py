"""A handler for ``logging`` that writes Fuchsia log records.

    logging.getLogger().addHandler(LogHandler("program.fxlog"))

Each record is in the file before the logging call returns, so that a crash loses none.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

from fx_log import format as wire
from fx_log.severity import PYTHON, Level
from fx_log.write.arguments import type_of
from fx_log.write.sinks import Where
from fx_log.write.writer import LogWriter
from fxframework.io.words import padding
from fxframework.model.target import Clock

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""Attributes of every record; all others come from the program's ``extra``."""
_TAKEN = wire.WELL_KNOWN.keys() | wire.ATTRIBUTION.keys()
"""Names with a meaning of their own for readers."""
_STEPS = sorted((python, level) for level, python in PYTHON.items())


def severity_of_level(level: int) -> int:
    """Return the severity byte of a level number of ``logging``, exact at the levels.

    The function is monotonic between the levels.

    Levels below 5 are TRACE, levels above 50 (CRITICAL) are FATAL.
    """
    lower, severity = _STEPS[0]
    if level <= lower:
        return int(severity)
    for upper, next_severity in _STEPS[1:]:
        if level <= upper:
            # Rounded up, so that a filter at a level selects the same records by severity.
            step = int(next_severity) - int(severity)
            return int(severity) + -(-step * (level - lower) // (upper - lower))
        lower = upper
        severity = next_severity
    return int(Level.FATAL)


class LogHandler(logging.Handler):
    """A handler of ``logging`` that writes structured records.

    ``where`` is a path, a binary file, or any other target of ``LogWriter``. An existing file is
    appended to, or replaced with ``append=False``; every record is written at once. ``tags`` follow
    the logger's name, which is the first tag with ``name_as_tag``, except for the root logger.
    ``clock`` gives the time at which a record is handled, by default the time since this machine's
    boot.

    A record has the native ids of the process and thread that logged it, file and line, the message
    followed by the traceback, and the program's ``extra`` as keys: numbers, texts and booleans
    unchanged, other values by their repr. A key whose name has a meaning for readers (such as
    ``tag``, ``file``) gets a trailing underscore. Values that are too large are cut.

    It never raises into the program: errors go to ``handleError``, as in any handler.
    """

    def __init__(
        self,
        where: Where,
        level: int | str = logging.NOTSET,
        *,
        append: bool = True,
        pid: int | None = None,
        tags: Iterable[str] = (),
        name_as_tag: bool = True,
        clock: Clock | Callable[[], int] | None = None,
    ) -> None:
        super().__init__(level)
        self._file: _File | None = None
        target = where
        if isinstance(where, str | os.PathLike):
            self._file = _File(where, append=append)
            target = self._file
        self._pid = pid
        self._name_as_tag = name_as_tag
        try:
            self.writer = LogWriter(
                target,
                tags=tags,
                clock=clock,
                always_file_line=True,
                on_too_large="cut",
            )
        except BaseException:
            self._shut()
            raise

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; errors go to ``handleError``."""
        try:
            self._write(record)
        except Exception:  # noqa: BLE001 (a program must not fail because of its log)
            self.handleError(record)

    def close(self) -> None:
        """Close the file of a path; any other target stays open."""
        super().close()
        self._shut()

    def _write(self, record: logging.LogRecord) -> None:
        tags = []
        if self._name_as_tag and record.name and record.name != "root":
            tags.append(_utf8(record.name))
        self.writer.write(
            severity_of_level(record.levelno or 0),
            _utf8(self._message(record)),
            {_free(name): _value(value) for name, value in _extra(record)},
            tags=tags,
            file=_utf8(record.pathname) if record.pathname else None,
            line=max(record.lineno or 0, 0),
            pid=record.process if self._pid is None else self._pid,
            tid=_native_id(record.thread),
        )

    def _message(self, record: logging.LogRecord) -> str:
        """Return the message in the program's format, or followed by the traceback."""
        formatter = self.formatter
        # The format of basicConfig repeats in the message what the record has in other fields.
        if formatter is None or getattr(formatter, "_fmt", None) == logging.BASIC_FORMAT:
            formatter = _PLAIN
        return formatter.format(record)

    def _shut(self) -> None:
        if self._file is not None:
            self._file.close()


class _File:
    """A file to which each record is appended whole, even if other processes append too."""

    def __init__(self, path: str | os.PathLike[str], *, append: bool) -> None:
        self._file = open(path, "ab" if append else "wb", buffering=0)  # noqa: PTH123, SIM115
        odd_bytes = padding(os.fstat(self._file.fileno()).st_size)
        if odd_bytes:  # a torn record: align the following ones, so that readers find them
            self._file.write(bytes(odd_bytes))

    def write(self, record: bytes) -> None:
        """Write a record; if the file takes only a part of it, truncate that part."""
        written = self._file.write(record)
        while written is not None and written < len(record):
            try:
                written += self._file.write(record[written:]) or 0
            except OSError:
                with contextlib.suppress(OSError):
                    size = os.fstat(self._file.fileno()).st_size
                    self._file.truncate(size - written)
                raise

    def close(self) -> None:
        """Close the file. May be called twice."""
        with contextlib.suppress(OSError):
            self._file.close()


_PLAIN = logging.Formatter("%(message)s")


def _native_id(ident: int | None) -> int | None:
    """Return the system's id of the thread ``ident`` of Python; None for the calling thread.

    A record may come from another thread, through a queue.
    """
    if ident is None or ident == threading.get_ident():
        return None
    for thread in threading.enumerate():
        if thread.ident == ident:
            return thread.native_id
    return ident


def _extra(record: logging.LogRecord) -> list[tuple[str, Any]]:
    return [(str(name), value) for name, value in vars(record).items() if name not in _STANDARD]


def _free(name: str) -> str:
    """Return the name of a key, changed if it has a meaning for readers."""
    return _utf8(f"{name}_" if name in _TAKEN else name)


def _value(value: Any) -> Any:
    """Return a value as an argument can hold it, by its repr if needed."""
    if isinstance(value, str):
        return _utf8(value)
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        return str(value)
    if type_of(value) is None:
        try:
            return _utf8(repr(value))
        except Exception as error:  # noqa: BLE001 (a program's own __repr__)
            return f"<{type(value).__name__}, whose repr failed: {type(error).__name__}>"
    return value


def _utf8(text: str) -> str:
    """Return a text with lone surrogates escaped, since records cannot hold them."""
    return text.encode(errors="backslashreplace").decode()

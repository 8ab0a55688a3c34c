"""Session: one run of ``fxf``: its settings, and how it opens inputs and tells their outcome."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Self

import attrs

from fxframework.errors import (
    ExitCode,
    FxError,
    Severity,
    UnreadableError,
    UsageError,
    did_you_mean,
)
from fxframework.registry import LIMIT_OPTIONS

if TYPE_CHECKING:
    from fxframework.cli.render import Screen
    from fxframework.host import Host
    from fxframework.model.capture import Capture
    from fxframework.model.window import Selection

__all__ = ["Moment", "Session", "Settings", "worst"]

UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
NOTHING = frozenset({"padding", "damaged", "unknown"})
"""Kinds of records that say nothing: a capture of these alone could not be read."""
ORDER = (
    ExitCode.OK,
    ExitCode.FINDINGS,
    ExitCode.NO_READER,
    ExitCode.MISSING_EXTRA,
    ExitCode.FAILED,
    ExitCode.USAGE,
)
"""From the best to the worst, for several inputs."""
LIMIT_NAMES = frozenset(option.name for option in LIMIT_OPTIONS)


def worst(*statuses: ExitCode) -> ExitCode:
    """The exit status of several inputs."""
    return max(statuses, key=ORDER.index, default=ExitCode.OK)


@attrs.frozen
class Moment:
    """A point of time: nanoseconds after the capture's first time, or of its clock."""

    ns: int
    absolute: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """``2s``, ``1.5ms``, ``300us``, ``20ns``, ``17`` (nanoseconds) or ``@NS``; UsageError."""
        number = text.removeprefix("@")
        absolute = number != text
        scale = 1
        if not absolute:
            for unit in sorted(UNITS, key=len, reverse=True):
                if number.endswith(unit):
                    number, scale = number.removesuffix(unit), UNITS[unit]
                    break
        try:
            exact = Fraction(number.strip()) * scale
        except (ValueError, ZeroDivisionError):
            exact = Fraction(1, 2)
        if "/" in number or exact.denominator != 1 or (exact < 0 and not absolute):
            raise UsageError(
                f"{text!r} is no time",
                remedy="give 2s, 1.5ms, 300us, 20ns, 17 (nanoseconds), or @NS of the clock",
            )
        return cls(exact.numerator, absolute)


@attrs.define
class Settings:
    """The options that every command takes."""

    format: str | None = None
    options: dict[str, str] = attrs.field(factory=dict)
    since: Moment | None = None
    until: Moment | None = None
    json: bool = False
    strict: bool = False
    verbose: int = 0
    quiet: bool = False
    color: str = "auto"


class Session:
    """What a command works with: the settings, the host and the screen."""

    def __init__(self, screen: Screen, host: Host | None = None) -> None:
        self.screen = screen
        self.settings = Settings()
        self.lists_failures = False
        """Whether the command itself tells of plugins that failed."""
        screen.settings = self.settings
        self._host = host

    @property
    def host(self) -> Host:
        """The plugins, found when they are first needed."""
        if self._host is None:
            from fxframework.host import default_host

            self._host = default_host()
        return self._host

    @property
    def known_host(self) -> Host | None:
        """The plugins, where they have been needed."""
        return self._host

    def report_failures(self) -> None:
        """Tell of plugins that failed, if plugins were needed and the command has not told."""
        if self._host is not None and not (self.settings.quiet or self.lists_failures):
            for failure in self._host.failures:
                self.screen.warn(
                    "FXF0008", f"plugin {failure.plugin} ({failure.distribution}): {failure.error}"
                )

    # --- inputs ---

    def named(self, text: str) -> tuple[str | None, str]:
        """The format and the path of an input: ``NAME:PATH``, or what ``-f`` says."""
        name, colon, path = text.partition(":")
        if colon and name in self.host.readers and not Path(text).exists():
            return name, path
        return self.settings.format, text

    @contextlib.contextmanager
    def open(
        self,
        text: str,
        *,
        also: Collection[str] = (),
        several: bool = False,
        strict: bool | None = None,
    ) -> Iterator[Capture]:
        """Open an input as the settings say, and close it.

        ``also`` are option names that the caller takes care of. With ``several`` inputs an option
        of another installed reader is passed over; otherwise it is a UsageError. ``strict`` is
        what the settings say, unless it is given. Raises what ``Host.open`` raises.
        """
        host = self.host
        format, path = self.named(text)
        reader = None if format is None else host.reader(format)
        given = self.settings.options
        with self.screen.working(f"fetching {path}") as fetched:
            source = host.source(path, options=given, progress=fetched)
        try:
            reader = reader or host.detect(source)
            own = {option.name for option in reader.options} | LIMIT_NAMES
            self.check_options(own | set(also), f"a {reader.format} capture", several=several)
            mine = {name: value for name, value in given.items() if name in own}
            strict = self.settings.strict if strict is None else strict
            capture = host.read(source, reader, strict=strict, options=mine)
        except BaseException:
            source.close()
            raise
        with capture:
            yield capture

    def check_options(self, known: Collection[str], whose: str, *, several: bool = False) -> None:
        """UsageError for an ``-o`` that nothing here has."""
        elsewhere = {
            option.name for reader in self.host.readers.values() for option in reader.options
        }
        for name in self.settings.options:
            if name not in known and not (several and name in elsewhere):
                raise UsageError(
                    f"{whose} has no option {name!r}{did_you_mean(name, known)}",
                    remedy=f"there are: {', '.join(sorted(known))}",
                )

    def whole(self, command: str) -> None:
        """UsageError where a command that looks at whole captures is given a stretch of time."""
        if self.settings.since or self.settings.until:
            raise UsageError(
                f"`fxf {command}` looks at the whole of a capture",
                remedy="--since and --until are for `cat` and `convert`",
            )

    def selection(self, capture: Capture, names: Selection | None = None) -> Selection | None:
        """What ``--since``, ``--until`` and ``names`` choose of a capture; None for all of it.

        Raises UsageError where a time is to be counted from the start and there is none.
        """
        from fxframework.model.window import Selection

        names = names or Selection()
        since, until = self.settings.since, self.settings.until
        if since is None and until is None:
            return None if names.by_time_alone else names
        base = 0
        if any(moment is not None and not moment.absolute for moment in (since, until)):
            start = capture.summary().start_ns
            if start is None:
                raise UsageError(
                    "nothing in it has a time to count from",
                    path=capture.name,
                    remedy="leave out --since and --until",
                )
            base = start
        first, last = (
            None if moment is None else moment.ns + (0 if moment.absolute else base)
            for moment in (since, until)
        )
        if first is not None and last is not None and first > last:
            raise UsageError("--until is before --since", remedy="exchange them")
        return attrs.evolve(names, start_ns=first, stop_ns=last)

    def window(self, capture: Capture, names: Selection | None = None) -> Capture:
        """The part of a capture that ``--since``, ``--until`` and ``names`` choose.

        Raises UsageError where it has no times, threads, processes or logs to choose by.
        """
        selection = self.selection(capture, names)
        return capture if selection is None else capture.select(selection)

    # --- outcomes ---

    def each(self, inputs: Sequence[str], work: Callable[[str], ExitCode]) -> ExitCode:
        """Do the same for every input; one that fails is told, and the others are done."""
        statuses = []
        for text in inputs:
            try:
                statuses.append(work(text))
            except UsageError:
                raise
            except FxError as error:
                self.screen.error(error)
                statuses.append(error.exit_code)
        return worst(*statuses)

    def status(self, capture: Capture) -> ExitCode:
        """FINDINGS where data was lost; the losses are told on stderr."""
        found = capture.diagnostics
        if found.worst is None or found.worst < Severity.DATA_LOSS:
            return ExitCode.OK
        self.screen.losses(capture)
        return ExitCode.FINDINGS


def require_readable(capture: Capture) -> None:
    """Raise UnreadableError where nothing sound is in a capture, and say why."""
    if any(count for kind, count in capture.summary().kinds.items() if kind not in NOTHING):
        return
    first = next(
        (f for f in capture.diagnostics.sorted() if f.severity >= Severity.DATA_LOSS), None
    )
    why = "" if first is None else f": {first.message}"
    raise UnreadableError(
        f"nothing in it can be read as {capture.format}{why}",
        path=capture.name,
        offset=None if first is None else first.offset,
        remedy=f"`fxf verify -f {capture.format}` lists what is wrong; `fxf cat --records` and "
        "OUT.jsonl keep the bytes",
    )

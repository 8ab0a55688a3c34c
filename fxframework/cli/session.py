"""Session: one run of ``fxf``: its settings, how it opens inputs, and how it ends."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from fxframework.conversion import check_options, require_readable
from fxframework.errors import ExitCode, FxError, Severity, UsageError
from fxframework.registry import Option

if TYPE_CHECKING:
    from fxframework.cli.guard import Guard
    from fxframework.cli.render import Screen
    from fxframework.cli.settings import Settings
    from fxframework.host import Host
    from fxframework.io.budget import Budget
    from fxframework.io.sink import Sink
    from fxframework.model.capture import Capture
    from fxframework.model.selection import Selection
    from fxframework.registry import Reader

__all__ = ["ORDER", "Session", "require_readable", "worst"]

ORDER = (
    ExitCode.OK,
    ExitCode.FINDINGS,
    ExitCode.NO_READER,
    ExitCode.MISSING_EXTRA,
    ExitCode.FAILED,
    ExitCode.USAGE,
)
"""From the best to the worst, for several inputs."""
BUDGETED = frozenset({"max_time", "max_memory", "max_output"})
"""Limits of the work as a whole, which every command has options for."""


def worst(*statuses: ExitCode) -> ExitCode:
    """The exit status of several inputs."""
    return max(statuses, key=ORDER.index, default=ExitCode.OK)


def no_options(_capture: Capture) -> Sequence[Option]:
    """For a command without options of its own for ``-o``."""
    return ()


class Session:
    """What a command works with: the settings, the host and the screen."""

    def __init__(
        self, screen: Screen, host: Host | None = None, *, owns_process: bool = False
    ) -> None:
        self.screen = screen
        self.owns_process = owns_process
        """Whether the process may be ended where a command cannot be interrupted."""
        self.lists_failures = False
        """Whether the command itself lists plugins that failed."""
        self._host = host

    @property
    def settings(self) -> Settings:
        """The options that every command takes."""
        return self.screen.settings

    @property
    def host(self) -> Host:
        """The plugins, found when they are first needed."""
        if self._host is None:
            from fxframework.host import default_host

            self._host = default_host()
        return self._host

    @functools.cached_property
    def budget(self) -> Budget:
        """What the command may take. Raises UsageError for an invalid limit."""
        from fxframework.host import limits_of
        from fxframework.io.budget import MEMORY_FACTOR, Budget

        given = self.settings.options
        budget = Budget(limits_of({name: given[name] for name in BUDGETED & given.keys()}))
        budget.memory_factor = MEMORY_FACTOR
        return budget

    def guard(self) -> Guard:
        """Stops the command where it exceeds its budget; a context manager."""
        from fxframework.cli.guard import Guard

        self.screen.budget = self.budget
        return Guard(self.budget, self.screen, owns_process=self.owns_process)

    @property
    def known_host(self) -> Host | None:
        """The plugins, where they have been needed."""
        return self._host

    def report_failures(self) -> None:
        """Warn of plugins that failed, if plugins were needed and the command lists none."""
        if self._host is not None and not (self.settings.quiet or self.lists_failures):
            for failure in self._host.failures:
                self.screen.warn(
                    "FXF0008", f"plugin {failure.plugin} ({failure.distribution}): {failure.error}"
                )

    def report_prints(self, modules: Iterable[str]) -> None:
        """Warn of plugins that printed text to standard output, where it would break the output."""
        host = self._host
        if host is None or self.settings.quiet:
            return
        packages = {module.partition(".")[0]: name for name, module in host.modules().items()}
        names = {packages.get(module.partition(".")[0]) for module in modules} - {None}
        for name in sorted(map(str, names)):
            self.screen.warn(
                "FXF0009",
                f"plugin {name} printed to standard output; it is on standard error instead",
            )

    # --- inputs and outputs ---

    def sink(self, out: str, *, force: bool = False, colours: bool = False) -> Sink:
        """Where a command's output goes, within its budget.

        On a terminal control characters become escapes, but with ``colours`` those that set
        colours. Raises what ``Host.sink`` raises.
        """
        if out == "-" and self.screen.out_is_terminal:
            from fxframework.cli.text import TerminalFile
            from fxframework.io.sink import Sink

            file: Any = TerminalFile(sys.stdout.buffer, colours=colours)
            sink = Sink(file, name="<stdout>")
        else:
            sink = self.host.sink(out, force=force)
        sink.budget = self.budget
        return sink

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
        also: Callable[[Capture], Sequence[Option]] | None = no_options,
        several: bool = False,
        strict: bool | None = None,
    ) -> Iterator[Capture]:
        """Open an input as the settings say, and close it.

        ``also`` gives options of a capture that the caller takes care of, such as an exporter's;
        None if the caller checks all options itself.
        With ``several`` inputs, options of other installed readers are ignored. ``strict`` is what
        the settings say, unless it is given. Raises what ``Host.open`` raises, and UsageError for
        an unknown option.
        """
        from fxframework.io import arena

        if self.owns_process:
            arena.keep(arena.KEEP_OF_ONE)
        host = self.host
        format, path = self.named(text)
        if format is not None:
            host.reader(format)  # it is there, before anything is fetched
        given = self.settings.options
        with self.screen.working(f"fetching {path}", "fetched") as fetched:
            source = host.source(path, options=given, progress=fetched)
        strict = self.settings.strict if strict is None else strict
        with host.open(
            source, format=format, strict=strict, options=given, others=True, budget=self.budget
        ) as capture:
            if also is not None:
                others = {name: owner.options for name, owner in host.readers.items()}
                more = [(f"reader {name}", options) for name, options in others.items()]
                check_options(
                    host,
                    given,
                    [capture],
                    ("this command", also(capture)),
                    *(more if several else []),
                )
            yield capture

    def check_reader_options(self, reader: Reader) -> None:
        """Refuse an option that neither a reader nor the limits have. Raises UsageError."""
        check_options(
            self.host, self.settings.options, [], (f"reader {reader.format}", reader.options)
        )

    def whole(self, command: str) -> None:
        """Refuse a stretch of time, for a command that looks at whole captures."""
        if self.settings.since or self.settings.until:
            raise UsageError(
                f"`fxf {command}` looks at the whole of a capture",
                remedy="--since and --until are for `cat`, `convert`, `diff` and the analyses",
            )

    def selection(self, capture: Capture, names: Selection | None = None) -> Selection | None:
        """What ``--since``, ``--until`` and ``names`` choose of a capture; None for all of it.

        Raises UsageError where a time counts from the start and the capture has no time.
        """
        from fxframework.model.selection import Selection

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

    def each(
        self,
        inputs: Sequence[str],
        work: Callable[[str], ExitCode],
        shown: list[Mapping[str, Any]] | None = None,
    ) -> ExitCode:
        """Do the same for every input; where one fails, print why and go on with the others.

        With ``shown``, the documents that ``--json`` prints, a failure is one of them.
        """
        statuses = []
        for text in inputs:
            try:
                statuses.append(work(text))
            except UsageError:
                raise
            except FxError as error:
                if shown is not None:
                    why = {"code": error.code, "message": error.message, "offset": error.offset}
                    shown.append({"path": self.named(text)[1], "error": why})
                self.screen.error(error)
                statuses.append(error.exit_code)
        return worst(*statuses)

    def status(self, capture: Capture) -> ExitCode:
        """FINDINGS where data was lost, with a note on stderr; else OK."""
        found = capture.diagnostics
        if found.worst is None or found.worst < Severity.DATA_LOSS:
            return ExitCode.OK
        self.screen.losses(capture)
        return ExitCode.FINDINGS

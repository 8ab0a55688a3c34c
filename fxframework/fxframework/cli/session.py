"""Session: one run of ``fxf``, with its settings, inputs and exit status."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from fxframework import plugin_files, rules
from fxframework.cli.settings import key_value
from fxframework.conversion import check_options
from fxframework.errors import ExitCode, FxError, Severity, UsageError
from fxframework.registry import Option
from fxframework.targets import owned_options

if TYPE_CHECKING:
    from fxframework.cli.guard import Guard
    from fxframework.cli.render import Screen
    from fxframework.cli.settings import Moment, Settings
    from fxframework.containment import Interrupts
    from fxframework.host import Host
    from fxframework.io.budget import Budget
    from fxframework.io.sink import Sink
    from fxframework.model.capture import Capture
    from fxframework.model.selection import Selection
    from fxframework.registry import Reader

ORDER = (
    ExitCode.OK,
    ExitCode.FINDINGS,
    ExitCode.NO_READER,
    ExitCode.MISSING_EXTRA,
    ExitCode.FAILED,
    ExitCode.USAGE,
)
"""Exit statuses from the best to the worst, for several inputs."""
BUDGETED = frozenset({"max_time", "max_memory", "max_output"})
"""Limits of a whole command, for which every command has options."""


def worst(*statuses: ExitCode) -> ExitCode:
    """Return the exit status for several inputs."""
    return max(statuses, key=ORDER.index, default=ExitCode.OK)


def no_options(_capture: Capture) -> Sequence[Option]:
    """Return no options, for a command without its own ``-o`` options."""
    return ()


class Session:
    """The context of a command: settings, host and screen."""

    def __init__(
        self, screen: Screen, host: Host | None = None, *, owns_process: bool = False
    ) -> None:
        self.screen = screen
        self.owns_process = owns_process
        """Whether the process may be ended if a command cannot be interrupted."""
        self.interrupts: Interrupts | None = None
        """What knows of a Ctrl-C of the user."""
        self.handles_interrupts = False
        """Whether the command goes on after a Ctrl-C, such as one that serves until then."""
        self.lists_failures = False
        """Whether the command itself lists failed plugins."""
        self._guard: Guard | None = None
        self._host = host
        self._is_own = host is None

    @property
    def settings(self) -> Settings:
        """The global options."""
        return self.screen.settings

    @property
    def host(self) -> Host:
        """The host, created on first use."""
        if self._host is None:
            from fxframework.host import default_host

            self._host = default_host()
        return self._host

    def load(self, files: Sequence[str]) -> None:
        """Load files as plugins, in this process and in those that it starts.

        Raises UsageError if there is no such file.
        """
        if not files:
            return
        listed_before = plugin_files.listed(os.environ)
        plugin_files.add(files)
        listed_now = plugin_files.listed(os.environ)
        if self._is_own:
            if listed_now != listed_before:
                self._host = None  # the next one loads them
        elif self._host is not None:
            for path in listed_now[len(listed_before) :]:
                self._host.load(path)

    @functools.cached_property
    def budget(self) -> Budget:
        """The budget of the command. Raises UsageError for an invalid limit."""
        from fxframework.host import limits_of
        from fxframework.io.budget import MEMORY_FACTOR, Budget

        options = self.settings.options
        budget = Budget(limits_of({name: options[name] for name in BUDGETED & options.keys()}))
        budget.memory_factor = MEMORY_FACTOR
        return budget

    def guard(self) -> Guard:
        """Return a context manager that stops the command if it exceeds its budget."""
        from fxframework.cli.guard import Guard

        self.screen.budget = self.budget
        self._guard = Guard(self.budget, self.screen, owns_process=self.owns_process)
        return self._guard

    @property
    def was_interrupted_by_guard(self) -> bool:
        """Whether the command was interrupted for its budget or its inputs, not by the user."""
        return self._guard is not None and self._guard.has_interrupted

    @property
    def known_host(self) -> Host | None:
        """The host, if it was needed."""
        return self._host

    def report_failures(self) -> None:
        """Warn of failed plugins, if plugins were needed and the command does not list them."""
        if self._host is not None and not (self.settings.quiet or self.lists_failures):
            for failure in self._host.failures:
                self.screen.warn(
                    rules.PLUGIN_FAILED.code,
                    f"plugin {failure.plugin} ({failure.distribution}): {failure.error}",
                )

    def report_prints(self, modules: Iterable[str]) -> None:
        """Warn of plugins that printed to standard output, where text would corrupt the output."""
        host = self._host
        if host is None or self.settings.quiet:
            return
        plugin_of_package = {
            module.partition(".")[0]: name for name, module in host.modules().items()
        }
        packages = {module.partition(".")[0] for module in modules}
        names = {plugin_of_package[package] for package in packages & plugin_of_package.keys()}
        for name in sorted(names):
            self.screen.warn(
                rules.PLUGIN_FAULT.code,
                f"plugin {name} printed to standard output; it is on standard error instead",
            )

    def check_interrupt(self) -> None:
        """Raise KeyboardInterrupt if the user interrupted the command, and the interrupt was lost.

        A command calls it where it goes on after an error, which may be what became of it.
        """
        if self.interrupts is not None and not self.handles_interrupts:
            self.interrupts.check()

    # --- Inputs and outputs ---

    def sink(self, out: str, *, force: bool = False, colours: bool = False) -> Sink:
        """Open a command's output, within its budget.

        On a terminal, control characters are escaped, except colours if ``colours`` is set. Raises
        the errors of ``Host.sink``.
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
        """Return format and path of an input: from ``NAME:PATH``, or the format of ``-f``."""
        name, colon, path = text.partition(":")
        if colon and name in self.host.readers and not Path(text).exists():
            return name, path
        name, colon, path = (self.settings.format or "").partition(":")
        if colon and name in self.host.readers:
            raise UsageError(
                f"-f takes the name of a format, not {self.settings.format!r}",
                remedy=f"give {name}:{path} in place of the file, without -f; -f {name} holds for "
                "all inputs",
            )
        return self.settings.format, text

    @contextlib.contextmanager
    def own_options(self, own: Iterable[str]) -> Iterator[None]:
        """Add options (KEY=VALUE) for the inputs that are opened within."""
        common = self.settings.options
        self.settings.options = {**common, **dict(map(key_value, own))}
        try:
            yield
        finally:
            self.settings.options = common

    @contextlib.contextmanager
    def open(
        self,
        text: str,
        *,
        also: Callable[[Capture], Sequence[Option]] | None = no_options,
        several: bool = False,
        strict: bool | None = None,
    ) -> Iterator[Capture]:
        """Open an input according to the settings, and close it at the end.

        ``also`` returns options of a capture that the caller handles, such as an exporter's; None
        if the caller checks all options itself. With ``several`` inputs, options of other
        installed readers are ignored. ``strict`` defaults to the setting. Raises the errors of
        ``Host.open``, and UsageError for an unknown option.
        """
        from fxframework.io import arena

        if self.owns_process:
            arena.keep(arena.KEEP_OF_ONE)
        host = self.host
        format, path = self.named(text)
        if format is not None:
            host.reader(format)  # check the format before fetching
        values = self.settings.options
        with self.screen.working(f"fetching {path}", noun="fetched") as fetched:
            source = host.source(path, options=values, progress=fetched)
        with self.screen.working(f"reading {path}", source):
            capture = host.open(
                source,
                format=format,
                strict=self.settings.strict if strict is None else strict,
                options=values,
                others=True,
                budget=self.budget,
            )
        with capture:
            if also is not None:
                takers: list[tuple[str, Iterable[Option]]] = [("this command", also(capture))]
                if several:
                    takers += owned_options(host.readers.values())
                check_options(host, values, [capture], *takers)
            yield capture

    def check_reader_options(self, reader: Reader) -> None:
        """Raise UsageError for an option that neither the reader nor the limits have."""
        check_options(self.host, self.settings.options, [], *owned_options([reader]))

    def whole(self, command: str) -> None:
        """Raise UsageError for ``--since`` and ``--until``, in a command for whole captures."""
        if self.settings.since or self.settings.until:
            raise UsageError(
                f"`fxf {command}` processes whole captures",
                remedy="use --since and --until with `cat`, `convert`, `diff` and the analyses",
            )

    def selection(self, capture: Capture, names: Selection | None = None) -> Selection | None:
        """Return the selection of ``--since``, ``--until`` and ``names``; None for everything.

        Raises UsageError if a time counts from the start and the capture has no times.
        """
        from fxframework.model.selection import Selection

        names = names or Selection()
        since = self.settings.since
        until = self.settings.until
        if since is None and until is None:
            if names.by_time_alone:
                return None
            return names

        def on_clock(moment: Moment | None) -> int | None:
            if moment is None:
                return None
            if moment.absolute:
                return moment.ns
            capture_start = capture.summary().start_ns
            if capture_start is None:
                raise UsageError(
                    "nothing in it has a time to count from",
                    path=capture.name,
                    remedy="omit --since and --until",
                )
            return capture_start + moment.ns

        start_ns = on_clock(since)
        stop_ns = on_clock(until)
        if start_ns is not None and stop_ns is not None and start_ns > stop_ns:
            raise UsageError("--until is before --since", remedy="exchange them")
        return attrs.evolve(names, start_ns=start_ns, stop_ns=stop_ns)

    def window(self, capture: Capture, names: Selection | None = None) -> Capture:
        """Return the part of a capture that ``--since``, ``--until`` and ``names`` select.

        The number of slices that are skipped is printed. Raises UsageError if it has no times,
        threads, processes or logs to select by.
        """
        selection = self.selection(capture, names)
        if selection is None:
            return capture
        window = capture.select(selection)
        self.screen.skipped(window.skipped_counts())
        return window

    # --- Outcomes ---

    def each(
        self,
        inputs: Sequence[str],
        work: Callable[[str], ExitCode],
        documents: list[Mapping[str, Any]] | None = None,
    ) -> ExitCode:
        """Process every input; if one fails, print the error and continue with the others.

        A failure is also added to the documents that ``--json`` prints, unless there is one of the
        input already, which says what is wrong.
        """
        statuses = []
        for text in inputs:
            try:
                statuses.append(work(text))
            except UsageError:
                raise
            except FxError as error:
                self.check_interrupt()
                has_document = documents and documents[-1].get("path") == error.path
                if documents is not None and not has_document:
                    failure = {"code": error.code, "message": error.message, "offset": error.offset}
                    documents.append({"path": self.named(text)[1], "error": failure})
                self.screen.error(error)
                statuses.append(error.exit_code)
        return worst(*statuses)

    def report(
        self,
        command: str,
        files: Sequence[str],
        work: Callable[[Capture, list[Mapping[str, Any]]], ExitCode],
    ) -> ExitCode:
        """Process every input, and print the documents that ``work`` adds as one, with --json."""
        documents: list[Mapping[str, Any]] = []

        def open_and_work(text: str) -> ExitCode:
            with self.open(text, several=len(files) > 1) as capture:
                return work(capture, documents)

        status = self.each(files, open_and_work, documents)
        if self.settings.json:
            self.screen.json(command, {"captures": documents})
        return status

    def status(self, capture: Capture) -> ExitCode:
        """Return FINDINGS, with a note on stderr, if data was lost; else OK."""
        diagnostics = capture.diagnostics
        if diagnostics.worst is None or diagnostics.worst < Severity.DATA_LOSS:
            return ExitCode.OK
        self.screen.losses(capture.name, diagnostics.counts, diagnostics.severity)
        return ExitCode.FINDINGS

"""The group ``fxf``: its commands, and the conversion of errors to exit statuses."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from fxframework.cli import INTERRUPTED, complete
from fxframework.cli.options import WithGlobalOptions, add_global_options, guarded
from fxframework.cli.render import Screen
from fxframework.cli.session import Session
from fxframework.containment import Interrupts
from fxframework.errors import (
    ExitCode,
    FxError,
    LimitError,
    OutputError,
    UsageError,
    did_you_mean,
    unexpected,
)
from fxframework.plugin_files import restored

if TYPE_CHECKING:
    from fxframework.host import Host

COMMANDS = {
    "info": "Show what captures contain.",
    "cat": "Print a capture: as text, as records, or one of its tables.",
    "convert": "Convert captures to another format.",
    "verify": "List every violation of the format.",
    "batch": "Convert many captures into one dataset.",
    "sql": "Query captures, or a dataset, with SQL.",
    "view": "Show captures in the Perfetto UI.",
    "diff": "Show what differs between two captures.",
    "compare": "Show what two runs, or many of two sides, did differently.",
    "odd": "Show which of many captures are unlike the rest.",
    "why": "Show where the time of slow calls went.",
    "account": "Show how often functions were called, and for how long.",
    "stack": "Show time by call stacks.",
    "graph": "Write the call graph, for Graphviz.",
    "watch": "Show how a live capture changes.",
    "salvage": "Write the sound part of a damaged capture.",
    "explain": "Explain a finding's code, or the bytes at an offset.",
    "replay": "Run scenarios on the emulated target.",
    "record": "Write the scenario that replays a capture.",
    "plugins": "List installed plugins, and those that failed.",
    "new-plugin": "Create the repository of a new plugin.",
    "doctor": "Check this installation.",
    "help": "Show how a command is used.",
}
"""Our commands with their short help, so that ``fxf --help`` does not import them."""


class Fxf(WithGlobalOptions, click.Group):
    """The group of commands: ours load on first use, plugins add theirs, `info` is the default."""

    _has_plugin_commands = False

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return our commands in the order of ``COMMANDS``, then those of plugins."""
        self._add_plugin_commands(ctx)
        return [*COMMANDS, *sorted(self.commands)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, importing it if it is one of ours."""
        if cmd_name in COMMANDS:
            module = importlib.import_module(f"fxframework.cli.{cmd_name.replace('-', '_')}")
            return module.command  # type: ignore[no-any-return]
        self._add_plugin_commands(ctx)
        return self.commands.get(cmd_name)

    def _add_plugin_commands(self, ctx: click.Context) -> None:
        if not self._has_plugin_commands:
            self._has_plugin_commands = True
            ctx.ensure_object(Session).host.add_commands(self, COMMANDS)
            for command in self.commands.values():
                # A plugin may add a plain command of click.
                if not isinstance(command, WithGlobalOptions):
                    add_global_options(command, times=False)
                    if command.callback is not None:
                        command.callback = guarded(command.callback)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first word names; `info` if the word is an input."""
        first_word = args[0]
        command = self.get_command(ctx, first_word)
        if command is not None:
            return first_word, command, args[1:]
        if not _is_input(first_word):
            known = [*COMMANDS, *self.commands]
            raise UsageError(
                f"{first_word!r} is neither a command nor a file{did_you_mean(first_word, known)}",
                remedy="`fxf --help` lists the commands",
            )
        if first_word != "-" and first_word.startswith("-"):
            # It was given after `--`, which must stay in effect.
            args = ["--", *args]
        return "info", self.get_command(ctx, "info"), args

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands, or else files for `fxf FILE`."""
        completions = super().shell_complete(ctx, incomplete)
        return completions or complete.files(ctx, self.params[0], incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing ours."""
        names = self.list_commands(ctx)
        rows = [
            (name, COMMANDS.get(name) or self.commands[name].get_short_help_str(80))
            for name in names
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands before the options."""
        self.format_commands(ctx, formatter)
        super().format_options(ctx, formatter)


def _is_input(text: str) -> bool:
    """Return whether a word that is not a command looks like an input."""
    return text == "-" or any(mark in text for mark in "./\\:") or Path(text).exists()


HELP = """Read, check and convert binary telemetry captures.

`fxf FILE`, short for `fxf info FILE`, shows what a capture contains.
"""
EPILOG = """\b
Exit status: 0 success; 1 failed; 2 wrong usage; 3 done, with losses
(verify: with violations); 4 no reader, or several; 5 a package is missing.
"""


# --- Running -----------------------------------------------------------------------------------


def run(arguments: Sequence[str] | None, *, host: Host | None) -> int:
    """Run ``fxf``; see ``fxframework.cli.main``."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    _replace_closed_streams()
    screen = Screen()
    session = Session(screen, host, owns_process=arguments is None)
    group = Fxf(name="fxf", help=HELP, epilog=EPILOG, subcommand_metavar="[COMMAND] FILE...",
                context_settings={"help_option_names": ["-h", "--help"]})  # fmt: skip
    if "_FXF_COMPLETE" in os.environ:
        from click.shell_completion import shell_complete

        return shell_complete(group, {"obj": session}, "fxf", "_FXF_COMPLETE",
                              os.environ["_FXF_COMPLETE"])  # fmt: skip
    try:
        with Interrupts() as interrupts, restored():
            return _run(group, session, args, interrupts)
    except BrokenPipeError:
        _discard_output()  # the reader of the pipe has closed it
        return ExitCode.OK


def _run(group: Fxf, session: Session, args: list[str], interrupts: Interrupts) -> int:
    """Run the command; convert exceptions to messages and statuses."""
    screen = session.screen
    session.interrupts = interrupts
    try:
        try:
            with group.make_context("fxf", args, obj=session) as context:
                status = group.invoke(context)
            screen.flush()
        finally:
            session.report_failures()
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.exceptions.NoArgsIsHelpError as missing:
        screen.print(missing.ctx.get_help())
        return ExitCode.USAGE
    except click.ClickException as error:
        screen.error(_usage(error))
        return ExitCode.USAGE
    except FxError as error:
        # A limit says more than that the user interrupted the command, too.
        if not isinstance(error, LimitError) and not session.was_interrupted_by_guard:
            interrupts.check()
        screen.error(error)
        if isinstance(error, OutputError):
            _discard_output()
        return error.exit_code
    except BrokenPipeError:
        raise
    except (KeyboardInterrupt, SystemExit) as error:
        host = session.known_host
        is_ours = host is None or host.blame(error) is None
        if is_ours or (isinstance(error, KeyboardInterrupt) and interrupts.by_user):
            raise
        screen.bug(error, host)
        return ExitCode.FAILED
    except click.exceptions.Abort:
        return INTERRUPTED
    except (OSError, MemoryError) as error:
        ours = unexpected(error)
        if getattr(error, "errno", None) == errno.EBADF and ours.path is None:
            was_closed = getattr(sys.stdin, "name", "") == 0  # opened by _replace_closed_streams
            ours.message = "standard input is closed" if was_closed else "standard output is closed"
            _discard_output()
        screen.error(ours)
        return ExitCode.FAILED
    except Exception as error:  # noqa: BLE001 (reported as a bug)
        interrupts.check()
        screen.bug(error, session.known_host)
        return ExitCode.FAILED
    session.check_interrupt()
    return status if isinstance(status, int) else ExitCode.OK


def _discard_output() -> None:
    """Redirect standard output to the null device, so that buffered bytes are lost at exit."""
    with contextlib.suppress(OSError, ValueError):
        descriptor = sys.stdout.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)


def _replace_closed_streams() -> None:
    """Open the null device in place of closed standard streams, in the wrong mode.

    So no other file becomes the standard output, and using one raises OSError (EBADF); output to
    a closed stderr is lost.
    """
    streams = (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY),
               ("stderr", "w", os.O_WRONLY))  # fmt: skip
    for number, (name, mode, wrong_mode) in enumerate(streams):
        if getattr(sys, name) is None:
            with contextlib.suppress(OSError):
                os.open(os.devnull, wrong_mode)
                setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _usage(error: click.ClickException) -> UsageError:
    """Convert an error of click to a UsageError."""
    context = getattr(error, "ctx", None)
    command_path = "fxf" if context is None else context.command_path
    text = error.format_message().rstrip(".")
    remedy = f"see `{command_path} --help`"
    if isinstance(error, click.NoSuchOption):
        name = error.option_name.lstrip("-")
        remedy += f"; options of readers and exporters are given with -o {name}=VALUE"
    return UsageError(text[:1].lower() + text[1:], remedy=remedy)

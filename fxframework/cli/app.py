"""The group ``fxf``: its commands, the options that all of them take, and how a run ends."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fxframework import __version__
from fxframework.cli.render import Screen
from fxframework.cli.session import Moment, Session
from fxframework.errors import ExitCode, FxError, UsageError, did_you_mean

if TYPE_CHECKING:
    from fxframework.host import Host
    from fxframework.registry import Option

__all__ = ["COMMANDS", "Command", "Fxf", "GroupedOption", "command", "pair", "run"]

COMMANDS = {
    "info": "Say what captures hold.",
    "cat": "Print a capture: as text, as records, or one of its tables.",
    "convert": "Put captures into another form.",
    "verify": "List every departure from the format.",
    "diff": "Say what differs between two captures.",
    "account": "Say how often functions were called, and for how long.",
    "stack": "Show the time by stacks of calls.",
    "graph": "Write who calls whom, for Graphviz.",
    "graph-diff": "Write how who calls whom differs, for Graphviz.",
    "watch": "Show how a live capture changes.",
    "salvage": "Write what is sound of a damaged capture.",
    "explain": "Explain a finding's code, or the bytes at an offset.",
    "replay": "Run scenarios against an emulated target.",
    "record": "Write the scenario that replays a capture.",
    "bench": "Measure decoding against copying the same bytes.",
    "plugins": "List what is installed, and what failed.",
    "doctor": "Check this installation.",
}
"""Our commands and their short help, so that ``fxf --help`` loads none of them."""

INTERRUPTED = 130


# --- options that every command takes ----------------------------------------------------------


def pair(text: str) -> tuple[str, str]:
    """What ``-o KEY=VALUE`` says; UsageError where it says nothing."""
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise UsageError(
            f"-o takes KEY=VALUE, not {text!r}", remedy="for example -o max_findings=20"
        )
    return key.strip(), value


def _store(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Keep an option with the session: it may stand before or after the command's name."""
    settings = ctx.ensure_object(Session).settings
    if param.name == "option":
        settings.options.update(map(pair, value))
    elif param.name in {"since", "until"}:
        if value is not None:
            setattr(settings, param.name, Moment.parse(value))
    elif param.name == "verbose":
        settings.verbose += value
    elif value not in {None, False}:
        setattr(settings, str(param.name), value)


def _version(ctx: click.Context, _param: click.Parameter, value: Any) -> None:
    if value:
        click.echo(f"fxf {__version__}")
        ctx.exit()


def _global_options() -> list[click.Parameter]:
    def option(*names: str, **settings: Any) -> click.Option:
        settings.setdefault("callback", _store)
        return click.Option(names, expose_value=False, **settings)

    return [
        option("-f", "--format", metavar="NAME",
               help="Format of the inputs, instead of detecting it; one input: NAME:PATH."),
        option("-o", "--option", metavar="KEY=VALUE", multiple=True,
               help="Option of a reader or exporter, or a limit (`fxf plugins -v`); repeatable."),
        option("--since", metavar="TIME",
               help="From here on: 2s, 1.5ms, 300us, 20ns after the start, or @NS of its clock."),
        option("--until", metavar="TIME", help="Up to here, this excluded."),
        option("--json", is_flag=True, help="Results as JSON, with a version."),
        option("--strict", is_flag=True, help="Stop at the first loss."),
        option("-v", "--verbose", count=True, help="Say more."),
        option("-q", "--quiet", is_flag=True, help="Say only what goes wrong."),
        option("--color", type=click.Choice(["auto", "always", "never"]), help="Colours; auto."),
        option("--version", is_flag=True, is_eager=True, callback=_version,
               help="Print the version."),
    ]  # fmt: skip


class _WithGlobalOptions(click.Command):
    """What our commands and the group have in common."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._own = len(self.params)
        self.params.extend(_global_options())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, and then those that all commands take."""
        common = set(self.params[self._own :])
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            title = "Everywhere" if param in common else getattr(param, "group", "Options")
            if record:
                sections.setdefault(title, []).append(record)
        sections["Everywhere"] = sections.pop("Everywhere", [])
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class GroupedOption(click.Option):
    """An option that stands under a title of its own in the help."""

    def __init__(self, *arguments: Any, group: str, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.group = group


class Command(_WithGlobalOptions):
    """One command of ours."""


class CaptureCommand(Command):
    """One that opens captures: it has the options that readers have flags for."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own, and those of the readers that are installed."""
        session = ctx.find_object(Session)
        own = super().get_params(ctx)
        return own if session is None else [*own, *_reader_options(session.host)]


def _reader_options(host: Host) -> list[click.Parameter]:
    """Options of readers that have flags, each once, whichever readers share it."""
    readers: dict[Option, list[str]] = {}
    for reader in host.readers.values():
        for option in reader.options:
            if option.flags:
                readers.setdefault(option, []).append(reader.format)
    return [
        GroupedOption(
            option.flags,
            group=f"Options of {', '.join(formats)}",
            help=option.help[:1].upper() + option.help[1:] + ".",
            is_flag=option.type is bool,
            metavar=None if option.type is bool else option.type.__name__.upper(),
            expose_value=False,
            callback=_setter(option),
        )
        for option, formats in readers.items()
    ]


def _setter(option: Option) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Sets an option of a reader as ``-o`` does."""

    def store(ctx: click.Context, _param: click.Parameter, value: Any) -> None:
        if value not in {None, False}:
            text = "yes" if value is True else value
            ctx.ensure_object(Session).settings.options[option.name] = text

    return store


def command(*, captures: bool = False, **settings: Any) -> Callable[[Callable[..., Any]], Command]:
    """Make a function a command; it is called with the Session first and gives its ExitCode.

    One that opens ``captures`` has the options that readers have flags for.
    """
    make = click.command(cls=CaptureCommand if captures else Command, **settings)

    def decorate(function: Callable[..., Any]) -> Command:
        return make(click.pass_obj(function))

    return decorate


class Fxf(_WithGlobalOptions, click.Group):
    """The group: our commands load when they are called, plugins add theirs, `info` is default."""

    _asked = False

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Ours, in our order, then those of plugins."""
        self._ask_plugins(ctx)
        return [*COMMANDS, *sorted(self.commands)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command, loaded if it is one of ours."""
        if cmd_name in COMMANDS:
            module = importlib.import_module(f"fxframework.cli.{cmd_name.replace('-', '_')}")
            return module.command  # type: ignore[no-any-return]
        self._ask_plugins(ctx)
        return self.commands.get(cmd_name)

    def _ask_plugins(self, ctx: click.Context) -> None:
        if not self._asked:
            self._asked = True
            ctx.ensure_object(Session).host.add_commands(self, COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names; `info` where it is an input."""
        first = args[0]
        found = self.get_command(ctx, first)
        if found is not None:
            return first, found, args[1:]
        if not _is_input(first):
            known = [*COMMANDS, *self.commands]
            raise UsageError(
                f"{first!r} is neither a command nor a file{did_you_mean(first, known)}",
                remedy="`fxf --help` lists the commands",
            )
        return "info", self.get_command(ctx, "info"), args

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, without loading ours."""
        names = self.list_commands(ctx)
        rows = [
            (name, COMMANDS.get(name) or self.commands[name].get_short_help_str(80))
            for name in names
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands first."""
        self.format_commands(ctx, formatter)
        super().format_options(ctx, formatter)


def _is_input(text: str) -> bool:
    """Whether a word that is no command is meant as an input."""
    return text == "-" or any(mark in text for mark in "./\\:") or Path(text).exists()


HELP = """Read, check and convert binary telemetry captures.

`fxf FILE` says what is in a capture; so does `fxf info FILE`.
"""
EPILOG = """\b
Exit status: 0 well; 1 failed; 2 wrong usage; 3 done, with losses
(verify: with any departure); 4 no reader, or several; 5 a package is missing.
"""


# --- running -----------------------------------------------------------------------------------


def run(arguments: Sequence[str] | None, *, host: Host | None) -> int:
    """See ``fxframework.cli.main``."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    screen = Screen()
    session = Session(screen, host)
    group = Fxf(name="fxf", help=HELP, epilog=EPILOG, subcommand_metavar="[COMMAND] FILE...",
                context_settings={"help_option_names": ["-h", "--help"]})  # fmt: skip
    if "_FXF_COMPLETE" in os.environ:
        from click.shell_completion import shell_complete

        return shell_complete(group, {"obj": session}, "fxf", "_FXF_COMPLETE",
                              os.environ["_FXF_COMPLETE"])  # fmt: skip
    try:
        status = _run(group, session, args)
        screen.flush()
    except BrokenPipeError:
        # Who reads our output has seen enough. What is still buffered must not be written at exit.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


def _run(group: Fxf, session: Session, args: list[str]) -> int:
    """Run the command; whatever it raises becomes a message and a status."""
    screen = session.screen
    try:
        try:
            with group.make_context("fxf", args, obj=session) as context:
                status = group.invoke(context)
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
        screen.error(error)
        return error.exit_code
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except click.exceptions.Abort:
        return INTERRUPTED
    except OSError as error:
        path = None if error.filename is None else str(error.filename)
        message = error.strerror or str(error)
        screen.error(FxError(message, path=path, remedy="check the disk and the permissions"))
        return ExitCode.FAILED
    except MemoryError:
        screen.error(
            FxError("there is not enough memory", code="FXF0003", remedy="-o max_memory=BYTES")
        )
        return ExitCode.FAILED
    except Exception as error:  # noqa: BLE001 (never a traceback)
        screen.bug(error, session.known_host)
        return ExitCode.FAILED
    return status if isinstance(status, int) else ExitCode.OK


def _usage(error: click.ClickException) -> UsageError:
    """What click complains of, in our words."""
    context = getattr(error, "ctx", None)
    where = "fxf" if context is None else context.command_path
    text = error.format_message().rstrip(".")
    return UsageError(text[:1].lower() + text[1:], remedy=f"see `{where} --help`")

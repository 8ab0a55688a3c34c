"""Global options, options of readers, and the `command` decorator."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from fxframework import __version__
from fxframework.cli import complete
from fxframework.cli.session import BUDGETED, Session
from fxframework.cli.settings import Moment, key_value
from fxframework.containment import PrintGuard

if TYPE_CHECKING:
    from fxframework.host import Host
    from fxframework.registry import Option

EVERYWHERE = "Everywhere"
TIMES = frozenset({"since", "until"})
"""Global options that only appear in the help of commands that can select a part."""


def _store(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Store an option in the session: it may precede or follow the command's name."""
    settings = ctx.ensure_object(Session).settings
    if param.name == "plugin":
        ctx.ensure_object(Session).load(value)
    elif param.name == "option":
        settings.options.update(map(key_value, value))
    elif param.name in BUDGETED:
        if value is not None:
            settings.options[str(param.name)] = value
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


class Number(click.FloatRange):
    """A number of a range; NaN, which click takes for any, is refused."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number. Raises BadParameter."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


class GroupedOption(click.Option):
    """An option listed under a separate title in the help."""

    def __init__(self, *arguments: Any, group: str, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.group = group


def _global_option(*names: str, **settings: Any) -> GroupedOption:
    settings.setdefault("callback", _store)
    return GroupedOption(names, group=EVERYWHERE, expose_value=False, **settings)


def _global_options() -> list[GroupedOption]:
    option = _global_option
    return [
        option("-f", "--format", metavar="NAME", shell_complete=complete.formats,
               help="Format of all inputs, instead of detecting it. For one input: NAME:PATH."),
        option("-o", "--option", metavar="KEY=VALUE", multiple=True,
               shell_complete=complete.options,
               help="Option of a reader or exporter, or a limit (`fxf plugins -v`); repeatable."),
        option("--plugin", metavar="FILE", multiple=True, is_eager=True,
               shell_complete=complete.files,
               help="Python module to load as a plugin; repeatable. Given before the command, it "
                    "can add commands and flags."),
        option("--since", metavar="TIME",
               help="Start of the range: 2s, 1.5ms, 300us, 20ns after the first time, or @NS of "
                    "the clock."),
        option("--until", metavar="TIME", help="End of the range, excluded."),
        option("--max-time", metavar="SECONDS", help="Stop after this time. Default: no limit."),
        option("--max-memory", metavar="BYTES",
               help="Stop if more memory is needed, such as 500M. Default: 2 GB and 16 times the"
                    " input."),
        option("--max-output", metavar="BYTES",
               help="Stop a longer output. Default: 256 MiB and 256 times the input."),
        option("--json", is_flag=True, help="Print results as JSON, with a version."),
        option("--strict", is_flag=True, help="Stop at the first data loss."),
        option("-v", "--verbose", count=True, help="Show more."),
        option("-q", "--quiet", is_flag=True, help="Show results and errors only."),
        option("--color", type=click.Choice(["auto", "always", "never"]),
               help="Colours. Default: auto."),
        option("--version", is_flag=True, is_eager=True, callback=_version,
               help="Print the version."),
    ]  # fmt: skip


def add_global_options(command: click.Command, *, times: bool = True) -> None:
    """Add the global options to a command, except those whose names it uses.

    Without ``times``, ``--since`` and ``--until`` are not listed in its help.
    """
    taken = {name for param in command.params for name in param.opts}
    for option in _global_options():
        option.hidden = option.name in TIMES and not times
        if taken.isdisjoint(option.opts):
            command.params.append(option)


class WithGlobalOptions(click.Command):
    """A command, or the group, with the global options."""

    def __init__(self, *arguments: Any, times: bool = True, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        add_global_options(self, times=times)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options by title, then the global ones."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            # The usage line names the arguments, and the text says what they are.
            if record and not isinstance(param, click.Argument):
                sections.setdefault(getattr(param, "group", "Options"), []).append(record)
        sections[EVERYWHERE] = sections.pop(EVERYWHERE, [])
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class Command(WithGlobalOptions):
    """A command of the host. Text that plugins print while it runs goes to standard error."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and report plugins that printed."""
        with PrintGuard.around() as guard:
            try:
                return super().invoke(ctx)
            finally:
                session = ctx.find_object(Session)
                if session is not None and guard.modules:
                    session.report_prints(guard.modules)


class CaptureCommand(Command):
    """A command that opens captures, with the options that readers have flags for."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own parameters and those of the installed readers."""
        session = ctx.find_object(Session)
        own = super().get_params(ctx)
        if session is None:
            return own
        return [*own, *_reader_options(session.host)]


def _reader_options(host: Host) -> list[click.Parameter]:
    """Return the readers' options that have flags; an option that readers share occurs once."""
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
    """Return a callback that sets an option of a reader as ``-o`` does."""

    def store(ctx: click.Context, _param: click.Parameter, value: Any) -> None:
        if value not in {None, False}:
            text = "yes" if value is True else value
            ctx.ensure_object(Session).settings.options[option.name] = text

    return store


def side_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command of two inputs ``--of-a`` and ``--of-b``: options of one of them."""
    for name, text in (
        ("--of-b", "Option like -o, for B alone; repeatable."),
        ("--of-a", "Option like -o, for A alone, such as its instr_map; repeatable."),
    ):
        command = click.option(name, multiple=True, metavar="KEY=VALUE", help=text)(command)
    return command


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a command's function so that it stops if it exceeds the session's budget."""

    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        session = click.get_current_context().find_object(Session)
        with contextlib.nullcontext() if session is None else session.guard():
            return function(*arguments, **options)

    return run


def command(
    *,
    captures: bool = False,
    times: bool = False,
    guard: bool = True,
    cls: type[Command] | None = None,
    **settings: Any,
) -> Callable[[Callable[..., Any]], Command]:
    """Return a decorator that makes a function a command.

    The function takes the Session first and returns an ExitCode. With ``captures``, the command
    has the options that readers have flags for; with ``times``, its help lists ``--since`` and
    ``--until``. Without ``guard``, the command enforces the limits itself. ``cls`` is a class of
    its own.
    """
    kind = cls or (CaptureCommand if captures else Command)
    make = click.command(cls=kind, times=times, **settings)

    def decorate(function: Callable[..., Any]) -> Command:
        return make(click.pass_obj(guarded(function) if guard else function))

    return decorate

"""``fxf help``: shows how ``fxf`` or one of its commands is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from fxframework.cli import complete
from fxframework.cli.options import command as _command
from fxframework.errors import ExitCode, UsageError, did_you_mean

if TYPE_CHECKING:
    from fxframework.cli.session import Session


@_command(name="help", guard=False)
@click.argument("name", required=False, metavar="[COMMAND]", shell_complete=complete.commands)
def command(session: Session, name: str | None) -> ExitCode:
    """Show how a command is used, as `fxf COMMAND --help` does; without COMMAND, list them all."""
    context = click.get_current_context().parent
    assert context is not None  # noqa: S101 (the context of the group)
    group = cast("click.Group", context.command)
    if name is None:
        return _show(session, "fxf", context.get_help())
    described_command = group.get_command(context, name)
    if described_command is None:
        command_names = group.list_commands(context)
        raise UsageError(
            f"there is no command {name!r}{did_you_mean(name, command_names)}",
            remedy="`fxf help` lists the commands",
        )
    with click.Context(described_command, info_name=name, parent=context) as command_context:
        return _show(session, f"fxf {name}", described_command.get_help(command_context))


def _show(session: Session, name: str, text: str) -> ExitCode:
    """Print a help text."""
    if session.settings.json:
        session.screen.json("help", {"command": name, "help": text})
    else:
        session.screen.print(text)
    return ExitCode.OK

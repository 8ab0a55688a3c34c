"""``fxf plugins``: lists plugins and failures, and runs the contract tests of a plugin."""

from __future__ import annotations

import importlib
import itertools
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs
import click

from fxframework.cli import complete
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session
from fxframework.cli.text import fields
from fxframework.errors import ExitCode, MissingExtraError
from fxframework.registry import LIMIT_OPTIONS, Exporter, Reader, Writer
from fxframework.targets import owned_options

if TYPE_CHECKING:
    from fxframework.host import Host, Plugin


@_command(name="plugins")
@click.option(
    "--check",
    metavar="NAME",
    shell_complete=complete.plugins,
    help="Run the contract tests of an installed plugin: exit 0 if all pass, 3 if one fails.",
)
def command(session: Session, check: str | None) -> ExitCode:
    """List plugins with their formats and exporters, and those that failed; -v adds options."""
    session.whole("plugins")
    session.lists_failures = True
    if check is not None:
        return _check(session, check)
    if session.settings.json:
        session.screen.json("plugins", _document(session.host))
    else:
        _print(session, session.host)
    return ExitCode.OK


def _check(session: Session, plugin: str) -> ExitCode:
    """Run the contract tests of a plugin; print a line for each descriptor and each failure."""
    try:
        # Import by name: the host must not depend on the test kit.
        kit = importlib.import_module("fxframework.testing.checkup")
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        purpose = "checking the contracts of a plugin"
        raise MissingExtraError(package, "testing", purpose=purpose) from error
    check_results = list(kit.checkup(session.host, plugin))
    failed_results = [result for result in check_results if result.status == "failed"]
    for advice in kit.advice_of(session.host, plugin):
        session.screen.note(advice)
    if session.settings.json:
        document = {
            "plugin": plugin,
            "ok": not failed_results,
            "tests": [attrs.asdict(result) for result in check_results],
        }
        session.screen.json("plugins-check", document)
    else:
        _print_results(session, plugin, check_results)
    return ExitCode.FINDINGS if failed_results else ExitCode.OK


def _print_results(session: Session, plugin: str, results: Sequence[Any]) -> None:
    screen = session.screen
    shown_statuses = {"failed", "skipped"} if session.settings.verbose else {"failed"}
    for (noun, item), group in itertools.groupby(
        results, lambda result: (result.contract, result.item)
    ):
        item_results = list(group)
        count_by_status = Counter(result.status for result in item_results)
        counts_line = ", ".join(
            f"{count} {status}" for status, count in sorted(count_by_status.items(), reverse=True)
        )
        skip_reasons = {result.message for result in item_results if result.status == "skipped"}
        if len(skip_reasons) == 1 and not count_by_status["failed"]:
            counts_line += f": {skip_reasons.pop()}"
        screen.print(f"{noun} {item}: {counts_line}")
        for result in item_results:
            if result.status in shown_statuses:
                screen.print(f"  {result.status} {result.test}: {result.fault}")
    failed_count = sum(result.status == "failed" for result in results)
    run_count = sum(result.status != "skipped" for result in results)
    verdict = f"{run_count} tests passed"
    if failed_count:
        verdict = f"{failed_count} of {run_count} tests failed"
    screen.print(f"plugin {plugin}: {verdict}")


def _accepts(exporter: Exporter) -> list[str]:
    if isinstance(exporter.accepts, str):
        return [exporter.accepts]
    return sorted(exporter.accepts)


def _document(host: Host) -> dict[str, Any]:
    def described(item: Reader | Writer | Exporter) -> dict[str, Any]:
        return {
            "title": item.title,
            "suffixes": item.suffixes,
            "plugin": host.owner(item).name,
            "options": [
                {**fields(option, "name default help"), "type": option.type.__name__}
                for option in item.options
            ],
        }

    return {
        "plugins": [
            fields(plugin, "name distribution version status registers observes")
            for plugin in host.plugins()
        ],
        "readers": [
            {"format": reader.format, **described(reader)} for reader in host.readers.values()
        ],
        "writers": [
            {"format": writer.format, **described(writer)} for writer in host.writers.values()
        ],
        "exporters": [
            {"name": exporter.name, "accepts": _accepts(exporter), **described(exporter)}
            for exporter in host.exporters
        ],
        "limits": [fields(limit, "name default help") for limit in LIMIT_OPTIONS],
        "failures": [attrs.asdict(failure) for failure in host.failures],
    }


def _print(session: Session, host: Host) -> None:
    screen = session.screen

    def section(title: str, header: Sequence[str], rows: list[Sequence[str]]) -> None:
        if rows:
            screen.print(screen.paint(title, bold=True))
            screen.wrapped_columns([header, *rows])

    section(
        "Plugins",
        ("NAME", "DISTRIBUTION", "STATUS", "REGISTERS"),
        [
            (
                plugin.name,
                f"{plugin.distribution} {plugin.version}".rstrip(),
                plugin.status,
                _registers(plugin),
            )
            for plugin in host.plugins()
        ],
    )
    formats = list(dict.fromkeys([*host.readers, *host.writers]))
    section(
        "Formats",
        ("NAME", "CAN BE", "SUFFIXES", "WHAT IT IS"),
        [_format(host, name) for name in formats],
    )
    section(
        "Exporters",
        ("NAME", "TAKES", "SUFFIXES", "WHAT IT GIVES"),
        [
            (exporter.name, _takes(exporter), " ".join(exporter.suffixes) or "–", exporter.title)
            for exporter in host.exporters
        ],
    )
    if session.settings.verbose:
        section("Options", ("OF", "NAME", "DEFAULT", "WHAT IT IS"), _all_options(host))
    section(
        "Failures",
        ("PLUGIN", "DISTRIBUTION", "WHAT HAPPENED"),
        [(failure.plugin, failure.distribution, failure.error) for failure in host.failures],
    )


def _registers(plugin: Plugin) -> str:
    kind_texts = [f"{kind} {', '.join(names)}" for kind, names in plugin.registers.items()]
    if plugin.observes:
        kind_texts.append(f"hooks {', '.join(plugin.observes)}")
    return "; ".join(kind_texts) or "nothing"


def _format(host: Host, name: str) -> Sequence[str]:
    """Return the row of a format, which has a reader, a writer, or both."""
    title = ""
    abilities = []
    suffixes: dict[str, None] = {}
    reader = host.readers.get(name)
    if reader is not None:
        title = reader.title
        abilities.append("read")
        suffixes |= dict.fromkeys(reader.suffixes)
    writer = host.writers.get(name)
    if writer is not None:
        title = title or writer.title
        abilities.append("written")
        suffixes |= dict.fromkeys(writer.suffixes)
    return (name, ", ".join(abilities), " ".join(suffixes) or "–", title)


def _takes(exporter: Exporter) -> str:
    if isinstance(exporter.accepts, str):
        return f"{exporter.accepts} captures"
    if "diagnostics" in exporter.accepts:  # a table of every capture
        return "every capture"
    return ", ".join(_accepts(exporter))


def _all_options(host: Host) -> list[Sequence[str]]:
    owned = owned_options(host.readers.values(), host.writers.values(), host.exporters)
    return [
        (owner, option.name, _shown(option.default), option.help)
        for owner, options in (("every reader", LIMIT_OPTIONS), *owned)
        for option in options
    ]


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if value not in {"", None} else "–"

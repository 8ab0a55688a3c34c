"""``fxf replay``: runs scenarios on an emulated target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fxframework.cli import complete
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session, worst
from fxframework.errors import ExitCode, FxError, UsageError, WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.kit.shown import amount, printable

if TYPE_CHECKING:
    from fxframework.cli.render import Screen
    from fxframework.replay import Report

SUFFIX = ".replay"
"""Suffix of the output folder, after the scenario's name."""


@_command(name="replay")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the outputs; of several scenarios, one for each in it. Default: NAME.replay.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), metavar="N", help="Seed, overriding the scenario's."
)
@click.option("--update-golden", is_flag=True, help="Write golden files instead of comparing.")
@click.option(
    "--allow-outside", is_flag=True, help="Let scenarios name files outside of their folder."
)
@click.option(
    "--junit", type=click.Path(path_type=Path), metavar="FILE", help="Also write JUnit XML."
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of scenarios.")
@click.option("--force", is_flag=True, help="Replace what is in DIR.")
@click.argument("scenarios", nargs=-1, metavar="SCENARIO...", shell_complete=complete.files)
def command(
    session: Session,
    out: Path | None,
    seed: int | None,
    update_golden: bool,
    allow_outside: bool,
    junit: Path | None,
    schema: bool,
    force: bool,
    scenarios: tuple[str, ...],
) -> ExitCode:
    """Run scenarios: emulated devices, steps, and expectations.

    Outputs and a report are written to DIR, the same bytes for the same seed. The exit status is
    0 if every expectation holds, 1 if one fails, 2 if a scenario is invalid.
    """
    session.whole("replay")
    if schema:
        _print_schema(session)
        return ExitCode.OK
    if not scenarios:
        raise UsageError(
            "replay takes a SCENARIO", remedy="for example examples/scenarios/boot.toml"
        )
    folder_by_scenario = _folders([Path(text) for text in scenarios], out)
    reports: list[Report] = []

    def replay_one(text: str) -> ExitCode:
        from fxframework.replay import replay

        folder = folder_by_scenario[Path(text)]
        with session.screen.working(f"replaying {text}"):
            report = replay(
                text,
                folder,
                seed=seed,
                host=session.host,
                update_golden=update_golden,
                allow_outside=allow_outside,
                force=force,
            )
        reports.append(report)
        settings = session.settings
        # With -q, only what failed is printed.
        if not settings.json and not (settings.quiet and report.ok):
            _print(session.screen, report, folder, verbose=settings.verbose > 0)
        return ExitCode.OK if report.ok else ExitCode.FAILED

    status = worst(*(_attempt(session, replay_one, text) for text in scenarios))
    if junit is not None:
        from fxframework.replay import junit as junit_xml

        with Sink.open(junit, force=force) as sink:
            sink.write(junit_xml(reports).encode())
    if session.settings.json:
        session.screen.json("replay", {"replays": [report.to_json() for report in reports]})
    return status


def _attempt(session: Session, replay_one: Callable[[str], ExitCode], text: str) -> ExitCode:
    """Run a scenario; print the reason if it cannot be run."""
    from fxframework.replay import ScenarioError

    try:
        return replay_one(text)
    except FxError as error:
        session.screen.error(error)
        if isinstance(error, ScenarioError) and len(error.faults) > 1:
            for fault in error.faults:
                session.screen.say(f"  {printable(str(fault))}")
        return error.exit_code


def _folders(scenarios: Sequence[Path], out: Path | None) -> dict[Path, Path]:
    """Return the output folder of each scenario."""
    if out is not None and len(scenarios) == 1:
        return {scenarios[0]: out}
    folders: dict[Path, Path] = {}
    for scenario in scenarios:
        parent = out or Path()
        folder = parent / (scenario.stem + SUFFIX)
        if folder in folders.values():
            raise WriteRefusedError(
                "two scenarios of one name leave their outputs in the same folder",
                path=str(folder),
                remedy="run them one by one, with --out",
            )
        folders[scenario] = folder
    return folders


def _print_schema(session: Session) -> None:
    import orjson

    from fxframework.replay import json_schema

    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    session.screen.write(orjson.dumps(json_schema(session.host), option=options))


def _print(screen: Screen, report: Report, folder: Path, *, verbose: bool) -> None:
    """Print the report and the paths of the outputs."""
    heading, *lines = report.to_text(verbose=verbose).splitlines()
    colour = "green" if report.ok else "red"
    screen.print(screen.paint(printable(heading), fg=colour, bold=True))
    for line in lines:
        screen.print(printable(line))
    for name in report.goldens.values():
        screen.print(f"  wrote {printable(name)}")
    output_sizes = "".join(
        f"{name} ({amount(len(data))}), " for name, data in report.outputs.items()
    )
    screen.print(printable(f"  {folder}: {output_sizes}report.json"))

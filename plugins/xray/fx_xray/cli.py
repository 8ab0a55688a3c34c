"""The command of XRay: `fxf instr-map`."""

from __future__ import annotations

from typing import Any

import click


def add_commands(cli: click.Group) -> None:
    """Add the commands of XRay to ``fxf``."""
    cli.add_command(instr_map)


@click.command(name="instr-map", short_help="Print the XRay instrumentation map of a program.")
@click.argument("file")
@click.option(
    "--format",
    "form",
    type=click.Choice(("yaml", "csv")),
    default="yaml",
    show_default=True,
    help="yaml: sleds, as `llvm-xray extract --symbolize` prints them; csv: functions",
)
@click.option(
    "--demangle/--no-demangle", default=True, show_default=True, help="names as the source has them"
)
@click.pass_obj
def instr_map(session: Any, file: str, form: str, demangle: bool) -> int:
    """Print the instrumentation map of FILE: which function has which id in XRay traces.

    FILE is a program, a shared library or an object that clang -fxray-instrument built, or a map
    that was printed before. What is printed serves as `-o instr_map=` where the program is not.
    """
    from fx_xray import rules
    from fx_xray.read.instr_map import read_map
    from fxframework.errors import UsageError
    from fxframework.io.sink import Sink

    instrumentation = read_map(file)
    if form == "yaml" and instrumentation.sleds is None and not session.settings.json:
        raise UsageError(
            "YAML is a list of sleds, and a map in CSV has none",
            path=file,
            remedy="give the program, or ask for --format csv",
        )
    if session.settings.json:
        functions = list(instrumentation.rows(demangled=demangle))
        session.screen.json("instr-map", {"path": file, "functions": functions})
    else:
        lines_of = instrumentation.to_yaml if form == "yaml" else instrumentation.to_csv
        with Sink.open("-") as sink:
            for line in lines_of(demangled=demangle):
                sink.write(line)
    for fault in instrumentation.faults:
        session.screen.warn(rules.INVALID_MAP_ENTRY.code, str(fault))
    return 0

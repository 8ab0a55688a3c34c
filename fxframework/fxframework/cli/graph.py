"""``fxf graph``: writes the call graph for Graphviz."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from fxframework.analysis.figures import FIGURES
from fxframework.cli import complete
from fxframework.cli.calls import by_option, finished, opened, out_options, write_dot
from fxframework.cli.filters import place_options
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session
from fxframework.errors import ExitCode

if TYPE_CHECKING:
    from fxframework.analysis.graph import CallGraph
    from fxframework.model.selection import Selection

SHOWN = ", ".join(FIGURES)


def figure_options(
    *, labels: str, vertex: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the options for labels and colours to a command."""
    options = (
        (("-e", "--edge-label"), "sum", f"{labels} of calls: {SHOWN}"),
        (("--vertex-label",), vertex, f"{labels} of functions: one of the same"),
        (("-c", "--edge-color"), "sum", "Measure that colours calls: one of the same"),
        (("-b", "--vertex-color"), "sum", "Measure that colours functions: one of the same"),
    )

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for names, default, text in reversed(options):
            command = click.option(
                *names, type=click.Choice(FIGURES), default=default, metavar="FIGURE",
                help=f"{text}. Default: {default}.",
            )(command)  # fmt: skip
        return command

    return decorate


@_command(captures=True, times=True, name="graph")
@by_option
@figure_options(labels="Label", vertex="count")
@out_options
@click.argument("file", shell_complete=complete.files)
@place_options
def command(
    session: Session, by: str, out: str, force: bool, file: str, names: Selection, **figures: str
) -> ExitCode:
    """Write the call graph, with counts and times, in the language of Graphviz.

    F0 is the caller of functions that nothing calls. Darker colours mean more. Times are in
    seconds. --json prints the same with all measures.
    """
    from fxframework.analysis.graph import call_graph, dot

    with opened(session, file, names) as (whole, part):
        with session.screen.working(f"analysing {whole.name}", whole.source):
            graph = call_graph(part, by=by)
            whole.trim()
        if session.settings.json:
            session.screen.json("graph", {"path": whole.name, **document(graph)})
        else:
            write_dot(session, dot(graph, **figures), out, force=force)
        session.screen.flush()
        return finished(session, whole, graph.asynchronous)


def document(graph: CallGraph) -> dict[str, Any]:
    """Return a graph as JSON; nodes and edges, with all their figures, are generators."""
    return {
        "units_per_second": graph.per_second,
        "asynchronous": graph.asynchronous,
        "nodes": (
            {"node": node.number, "name": node.function.name, **node.spread.to_json()}
            for node in graph.nodes.values()
        ),
        "edges": (
            {"caller": caller, "callee": callee, **spread.to_json()}
            for (caller, callee), spread in graph.edges.items()
        ),
    }

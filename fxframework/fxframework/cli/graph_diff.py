"""``fxf graph-diff``: writes how the call graphs of two captures differ, for Graphviz."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from fxframework.cli import complete
from fxframework.cli.calls import by_option, finished, opened, out_options, write_dot
from fxframework.cli.filters import place_options
from fxframework.cli.graph import figure_options
from fxframework.cli.options import command as _command
from fxframework.cli.options import side_options
from fxframework.cli.session import Session, worst
from fxframework.errors import ExitCode

if TYPE_CHECKING:
    from fxframework.analysis.graph import GraphDifference
    from fxframework.analysis.spread import Spread
    from fxframework.model.selection import Selection

SIDES = ("A", "B")
MEASURES = {"count": "count", "sum": "sum", "self": "self", "median": "med", "max": "max"}
"""Figures that --json compares, by their names in the output."""


@_command(
    captures=True, name="graph-diff", short_help="Write how two call graphs differ, for Graphviz."
)
@by_option
@figure_options(labels="Label, as a change,", vertex="sum")
@side_options
@out_options
@click.argument("first", metavar="A", shell_complete=complete.files)
@click.argument("second", metavar="B", shell_complete=complete.files)
@place_options
def command(
    session: Session,
    by: str,
    of_a: tuple[str, ...],
    of_b: tuple[str, ...],
    out: str,
    force: bool,
    first: str,
    second: str,
    names: Selection,
    **figures: str,
) -> ExitCode:
    """Write how the call graphs of two captures differ, in the language of Graphviz.

    Functions are matched by name. Red means more in B than in A, green means less; labels have the
    share. --json prints the same with several measures.
    """  # fmt: skip
    from fxframework.analysis.graph import call_graph, difference, dot_of_difference

    graphs, statuses = [], []
    for file, own in ((first, of_a), (second, of_b)):
        with (
            session.own_options(own),
            opened(session, file, names, several=True) as (whole, part),
        ):
            with session.screen.working(f"analysing {whole.name}", whole.source):
                # Functions are compared by name, so equal names must be merged.
                graph = call_graph(part, by="name" if by in {"", "id"} else by)
            whole.trim()
            graphs.append(graph)
            statuses.append(finished(session, whole, graph.asynchronous))
    found = difference(graphs[0], graphs[1])
    if session.settings.json:
        paths = dict(zip(SIDES, (first, second), strict=True))
        session.screen.json("graph-diff", {"paths": paths, **_document(found)})
    else:
        write_dot(session, dot_of_difference(found, **figures), out, force=force)
    session.screen.flush()
    return worst(*statuses)


def _document(found: GraphDifference) -> dict[str, Any]:
    def side(graph: int, spread: Spread | None) -> dict[str, float | None] | None:
        if spread is None:
            return None
        return {name: found.sides[graph].figure(spread, key) for name, key in MEASURES.items()}

    def both(spreads: tuple[Spread | None, Spread | None]) -> dict[str, Any]:
        changes = {name: found.change(spreads, key) for name, key in MEASURES.items()}
        return {
            **{name: side(at, spreads[at]) for at, name in enumerate(SIDES)},
            "change": {
                name: None if change is None or math.isinf(change) else change
                for name, change in changes.items()
            },
        }

    return {
        "nodes": ({"name": name, **both(pair)} for name, pair in found.nodes.items()),
        "edges": (
            {"caller": caller, "callee": callee, **both(pair)}
            for (caller, callee), pair in found.edges.items()
        ),
    }

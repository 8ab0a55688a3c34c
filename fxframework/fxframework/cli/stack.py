"""``fxf stack``: shows time by call stacks."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import click

from fxframework.cli import complete
from fxframework.cli.calls import by_option, finished, length, opened
from fxframework.cli.filters import place_options
from fxframework.cli.options import Number
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session, worst
from fxframework.errors import ExitCode
from fxframework.kit.shown import amount, columns, printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fxframework.analysis.tree import CallTree
    from fxframework.model.selection import Selection

STEP = "  "
BY_SHARE = "share"
BY_DEPTH = "depth"
FIGURES = 45
"""Columns of the figures behind a name."""


@_command(captures=True, times=True, name="stack")
@by_option
@click.option("--per-thread", is_flag=True, help="Print a tree for each thread.")
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    default=64,
    metavar="N",
    help="Greatest depth that the tree shows. Default: 64.",
)
@click.option(
    "--min-percent",
    type=Number(0, 100),
    default=1.0,
    metavar="P",
    help="Leave out calls with a smaller share of the time. Default: 1.",
)
@click.option("--all", "everything", is_flag=True, help="Show all calls, whatever their share.")
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=10,
    metavar="N",
    help="Stacks in each of the lists below the tree. Default: 10.",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=complete.files)
@place_options
def command(
    session: Session,
    by: str,
    per_thread: bool,
    depth: int,
    min_percent: float,
    top: int,
    everything: bool,
    files: tuple[str, ...],
    names: Selection,
) -> ExitCode:
    """Show time by call stacks: a tree of callers and callees, with the times of all calls.

    Calls with less than 1% of the time are left out; a line says how many, and how much they took.
    Below it are the stacks with the most time of their own, and those called most often. Several
    FILEs are summed, with functions identified by name. --json prints the whole tree, whatever its
    depth: parents precede their children.
    """  # fmt: skip
    from fxframework.analysis.tree import call_tree, merged

    trees = []
    statuses = []
    for file in files:
        with opened(session, file, names, several=len(files) > 1) as (whole, part):
            with session.screen.working(f"analysing {whole.name}", whole.source):
                tree = call_tree(part, by=by, per_thread=per_thread)
            whole.trim()
            trees.append(tree)
            statuses.append(finished(session, whole, tree.asynchronous))
    tree = merged(trees)
    if session.settings.json:
        session.screen.json("stack", {
            "paths": list(files),
            "units_per_second": tree.per_second,
            "asynchronous": tree.asynchronous,
            "nodes": _documents(tree),
        })  # fmt: skip
    else:
        if everything:
            min_percent = 0.0
        _print_tree(session, tree, depth, min_percent, show_roots=per_thread)
        if top:
            _print_list(session, tree, "took the most time by themselves", tree.own, top)
            _print_list(session, tree, "were called most often", tree.count, top)
    session.screen.flush()
    return worst(*statuses)


def _documents(tree: CallTree) -> Iterator[dict[str, Any]]:
    columns = (tree.parent, tree.count, tree.unfinished, tree.total, tree.own)
    rows = zip(*(map(int, column) for column in columns), strict=True)
    for node, (parent, count, unfinished, total, own) in enumerate(rows):
        yield {
            "node": node,
            "parent": None if parent < 0 else parent,
            "name": tree.name(node),
            "count": count,
            "unfinished": unfinished,
            "total": total,
            "self": own,
        }


def _print_tree(
    session: Session, tree: CallTree, depth: int, min_percent: float, *, show_roots: bool
) -> None:
    """Print the tree, branches with the most time first."""
    screen = session.screen
    if len(tree) == len(tree.roots):
        screen.note("there are no calls")
        return
    left_out = _LeftOut(int(tree.total[: len(tree.roots)].sum()), tree.per_second)
    name_width = screen.width - FIGURES

    def rows() -> Iterator[list[str]]:
        yield ["function", "share", "total", "self", "calls"]
        for node, level in _shown_nodes(tree, depth, min_percent, left_out):
            # Without roots, the threads are not shown, and their callees are the first level.
            if show_roots:
                yield _row(tree, node, level, level, left_out, name_width)
            elif level:
                yield _row(tree, node, level, level - 1, left_out, name_width)

    screen.table(rows(), [False, True, True, True, True], name=0)
    if left_out.calls:
        reasons = {
            BY_SHARE: f"below {min_percent:g}% (--all shows them)",
            BY_DEPTH: f"deeper than {depth} (--depth N shows N levels)",
        }
        for line in textwrap.wrap(left_out.text(reasons), screen.width):
            screen.print(line)


def _shown_nodes(
    tree: CallTree, depth: int, min_percent: float, left_out: _LeftOut
) -> Iterator[tuple[int, int]]:
    """Yield the nodes to show with their levels; count the others as left out."""
    # While the walk is below a node that is not shown: its level. Its time has that of all below.
    hidden_level: int | None = None
    for node, level in tree.walk(tree.total):
        if hidden_level is not None and level > hidden_level:
            left_out.calls += 1
            continue
        hidden_level = None
        total = int(tree.total[node])
        is_deep = level > depth
        if is_deep or left_out.share(total) < min_percent:
            left_out.calls += 1
            left_out.total += total
            left_out.reasons.add(BY_DEPTH if is_deep else BY_SHARE)
            hidden_level = level
            continue
        yield node, level


def _row(
    tree: CallTree, node: int, level: int, indent: int, left_out: _LeftOut, name_width: int
) -> list[str]:
    """Return the cells of a node: name, share, total, and for calls own time and number."""
    total = int(tree.total[node])
    name = printable(tree.name(node))
    unfinished = int(tree.unfinished[node])
    if unfinished:
        name += f"  ({amount(unfinished)} never ended)"
    cells = [
        _indented(indent, name, name_width),
        f"{left_out.share(total):.1f}%",
        length(total, tree.per_second),
    ]
    if not level:  # a thread
        return [*cells, "", ""]
    own = length(int(tree.own[node]), tree.per_second)
    return [*cells, own, amount(int(tree.count[node]))]


@attrs.define
class _LeftOut:
    """The calls that a tree does not show."""

    whole: int
    """The time of all calls."""
    per_second: int
    calls: int = 0
    total: int = 0
    """The time of those directly below calls that are shown."""
    reasons: set[str] = attrs.field(factory=set)
    """BY_SHARE or BY_DEPTH, or both."""

    def share(self, time: int) -> float:
        """Return a time in percent of that of all calls."""
        return 100 * time / self.whole if self.whole else 0.0

    def text(self, words: Mapping[str, str]) -> str:
        """Return a line with their number and time; ``words`` say each reason."""
        reasons = [text for reason, text in words.items() if reason in self.reasons]
        return (
            f"… and {amount(self.calls, 'stack')} with {self.share(self.total):.1f}% of the time, "
            f"{length(self.total, self.per_second)}: {' or '.join(reasons)}"
        )


def _indented(level: int, name: str, width: int) -> str:
    """Return a name indented by its level, a number where the indent would take half the line."""
    indent = STEP * level
    if len(indent) > width // 2:
        indent = f"{' ' * (width // 2)}{level}: "
    return indent + name


def _print_list(
    session: Session, tree: CallTree, what: str, weight: NDArray[np.int64], top: int
) -> None:
    """Print the stacks with the greatest weight, as paths."""
    from fxframework.kernels.sorting import largest

    screen = session.screen
    heaviest = [node for node in largest(weight, top).tolist() if weight[node]]
    shown = sorted(heaviest, key=lambda node: -weight[node])
    if not shown:
        return
    screen.print()
    screen.print(screen.paint(f"stacks that {what}", bold=True))
    rows = [("self", "calls", "stack")]
    for node in shown:
        path = " > ".join(printable(tree.name(step)) for step in tree.path(node))
        own = length(int(tree.own[node]), tree.per_second)
        rows.append((own, amount(int(tree.count[node])), path))
    for line in columns(rows, [True, True, False], screen.width, name=2):
        screen.print(line)

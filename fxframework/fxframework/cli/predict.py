"""``fxf verify --as``: predicts what another reader refuses, drops or misreads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fxframework.cli.session import Session
from fxframework.cli.text import amount, fields, hex_context, place, printable
from fxframework.errors import ExitCode
from fxframework.model.prediction import Effect

if TYPE_CHECKING:
    from fxframework.io.source import Source
    from fxframework.model.capture import Capture
    from fxframework.model.prediction import Loss, Prediction

SHOWN = 3
"""Places per loss that are shown without -v."""
COLOURS = {
    Effect.REFUSES: "red",
    Effect.STOPS: "red",
    Effect.DROPS: "red",
    Effect.MISREADS: "yellow",
    Effect.UNPREDICTED: "cyan",
}


def predict(session: Session, files: tuple[str, ...], name: str) -> ExitCode:
    """Print what the reader of this name loses of each file; return FINDINGS for losses."""
    from fxframework.verbs import predict

    def one(capture: Capture, shown: list[Mapping[str, Any]]) -> ExitCode:
        with session.screen.working(f"reading {capture.name}", capture.source):
            found = predict(capture, name)
        if session.settings.json:
            head = {**fields(capture, "path=name format"), "size": capture.source.size}
            shown.append({**head, **found.to_json()})
        else:
            _print(session, capture.source, found)
        return ExitCode.OK if found.clean else ExitCode.FINDINGS

    return session.report("verify", files, one, {"as": name})


def _print(session: Session, source: Source, found: Prediction) -> None:
    screen = session.screen
    for loss in found.losses:
        _print_loss(session, source, loss, counts=found.has_counters)
    verdict, colour = _verdict(found)
    counters = [f"{counter} {count:,}" for counter, count in found.counters.items()]
    tail = f"; counters: {', '.join(counters)}" if counters else ""
    verdict = screen.paint(verdict, fg=colour, bold=True)
    who = f"{found.reader} ({found.title})"
    records = amount(found.records, "record")
    screen.print(f"{printable(source.name)}: {verdict} by {who}, {records}{tail}")


def _verdict(found: Prediction) -> tuple[str, str]:
    if found.refused is not None:
        return "refused", "red"
    return ("read whole", "green") if found.clean else ("read with losses", "yellow")


def _print_loss(session: Session, source: Source, loss: Loss, *, counts: bool) -> None:
    screen = session.screen
    quirk = loss.quirk
    head = screen.paint(f"{quirk.effect.value}[{quirk.key}]", fg=COLOURS[quirk.effect], bold=True)
    screen.print(f"{head}: {quirk.title}")
    everything = bool(session.settings.verbose)
    for index, where in enumerate(loss.places if everything else loss.places[:SHOWN]):
        screen.print(f"  --> {place(source.name, where.offset, where.record)}")
        if where.detail:
            screen.print(f"   {printable(where.detail)}")
        if not index:
            for line in hex_context(source, where.offset):
                screen.print(f"   {line}")
    hidden = loss.count - (len(loss.places) if everything else min(SHOWN, len(loss.places)))
    if hidden:
        rest = amount(hidden, "more place")
        screen.print(f"  {rest}" + ("" if everything else " (-v lists them)"))
    if quirk.message:
        screen.print(f"  = Its message: {quirk.message}")
    if quirk.counter:
        screen.print(f"  = Its counter: {quirk.counter} {loss.count:,}")
    elif counts and quirk.effect not in {Effect.REFUSES, Effect.UNPREDICTED}:
        screen.print("  = It counts nothing.")

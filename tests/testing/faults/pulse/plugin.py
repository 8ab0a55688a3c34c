"""Pulse: what the package registers.

A file is ``PULSE001`` and records: a kind, a size, and what the kind has. Times are microseconds.
"""

from collections.abc import Iterable

from fxframework import hookimpl
from fxframework.errors import Catalogue, Rule, Severity
from fxframework.registry import (
    Confidence,
    DeviceKind,
    Exporter,
    Option,
    Reader,
    StepKind,
    Writer,
    lazy,
    lazy_type,
)

MAGIC = b"PULSE001"
SURE = Confidence.CERTAIN
ROWS = (
    (1, Severity.DATA_LOSS, "the rest is damaged", "A record has its size."),
    (2, Severity.WARNING, "a kind that is not defined", "Kinds are 1 to 6."),
    (3, Severity.ERROR, "this cannot be written", "Fields have their ranges."),
    (4, Severity.INFO, "an end without a beginning", "An end follows its beginning."),
    (5, Severity.DATA_LOSS, "a record is longer than the limit", "The limit is max_record."),
    (6, Severity.DATA_LOSS, "the magic is missing", "A file begins with PULSE001."),
)
RULES = Catalogue(
    Rule(
        code=f"PUL{number:04}",
        severity=severity,
        title=title,
        rule=rule,
        section="Pulse, Records",
        ours="It is kept as it is.",
        remedy="Compare with `fxf cat --records`.",
    )
    for number, severity, title, rule in ROWS
)


@hookimpl
def fx_readers() -> Iterable[Reader]:
    """Pulse."""
    return [
        Reader(
            format="pulse",
            magic=MAGIC,
            open=lazy("pulse.reader:PulseCapture"),
            explain=lazy("pulse.reader:explain"),
            rules=lambda: RULES,
            sample=lazy("pulse.reader:sample"),
            options=(Option(name="gap", type=int, default=0, help="nanoseconds before time 0"),),
        )
    ]


@hookimpl
def fx_writers() -> Iterable[Writer]:
    """Pulse."""
    return [
        Writer(
            format="pulse",
            open=lazy("pulse.writer:PulseWriter"),
            extract=lazy("pulse.writer:extract"),
        )
    ]


@hookimpl
def fx_exporters() -> Iterable[Exporter]:
    """Lines of text."""
    return [
        Exporter(
            name="lines",
            title="one event per line",
            accepts=frozenset({"instants", "slices"}),
            open=lazy("pulse.lines:LinesExport"),
            writes=frozenset({"ts", "dur", "name"}),
            options=(Option(name="head", type=bool, default=True, help="whether to begin with a "
                            "line of names"),),
        )
    ]  # fmt: skip


@hookimpl
def fx_step_kinds() -> Iterable[StepKind]:
    """Emit and save."""
    return [
        StepKind(
            name=f"pulse.{name}",
            title=title,
            parameters=lazy_type(f"pulse.steps:{name.capitalize()}"),
            run=lazy(f"pulse.steps:{name}"),
            sample=lazy("pulse.steps:scenario"),
        )
        for name, title in (("emit", "Put marks into a ring."), ("save", "Keep a ring's bytes."))
    ]


@hookimpl
def fx_devices() -> Iterable[DeviceKind]:
    """A ring of marks."""
    return [
        DeviceKind(
            name="pulse_ring",
            title="A ring of marks.",
            open=lazy("pulse.steps:open_ring"),
            parameters=lazy_type("pulse.steps:RingParameters"),
            sample=lazy("pulse.steps:scenario"),
        )
    ]

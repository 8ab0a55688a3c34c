"""Descriptors: what a plugin registers. They import nothing heavy; code loads on first use."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from fxframework.errors import PluginError, UsageError, did_you_mean
from fxframework.io.limits import Limits

if TYPE_CHECKING:
    from pathlib import Path

    from fxframework.errors import Catalogue
    from fxframework.io.sink import Sink
    from fxframework.io.source import Source
    from fxframework.io.words import FieldView
    from fxframework.kit.salvage import Loss
    from fxframework.model.capture import Capture, OpenRequest
    from fxframework.model.diagnostics import Diagnostics
    from fxframework.model.prediction import Prediction, Quirk
    from fxframework.model.selection import Selection

__all__ = [
    "EVERY_CAPTURE",
    "HEAD",
    "LIMIT_OPTIONS",
    "Confidence",
    "DeviceKind",
    "ExportSession",
    "Exporter",
    "LiveSnapshot",
    "Option",
    "Probe",
    "Reader",
    "RecordWriter",
    "Reference",
    "StepKind",
    "Writer",
    "lazy",
    "lazy_type",
    "never_the_same",
    "parse_options",
]

HEAD = 1 << 16
"""Bytes from the start of an input that a sniffer sees."""
EVERY_CAPTURE = frozenset({"diagnostics"})
"""What an exporter accepts that takes any capture: every capture has this table."""


class Confidence(IntEnum):
    """How sure a sniffer is."""

    NONE = 0
    """It is of another format."""
    POSSIBLE = 1
    """Nothing speaks against it, such as a suffix alone."""
    LIKELY = 2
    """It looks like the format."""
    CERTAIN = 3
    """A magic and a header check out."""


@attrs.frozen(kw_only=True)
class Probe:
    """What a sniffer gets: the first bytes of an input, its size and its file name."""

    head: bytes
    """The first bytes, at most ``HEAD`` of them."""
    size: int
    """Bytes of the whole (unpacked) input."""
    name: str
    """The name of the input; may be empty."""

    def has_suffix(self, suffixes: Iterable[str]) -> bool:
        """Whether the file name ends in one of them, in any case."""
        name = os.path.basename(self.name).lower()  # noqa: PTH119 (a name, not always a path)
        return any(name.endswith(suffix) for suffix in suffixes)


@attrs.frozen
class Option:
    """An option that ``-o NAME=VALUE`` sets: ``Option("depth", 64, "how deep it looks")``."""

    name: str
    """Its name: lower case, digits and underscores."""
    default: Any
    """Its value where it is not given."""
    help: str
    """What it does, in one line without a full stop."""
    type: type = attrs.field(
        default=attrs.Factory(lambda option: type(option.default), takes_self=True), kw_only=True
    )
    """bool, int, float or str: that of the default."""
    choices: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    """The words that it takes, where it takes only some."""
    flags: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    """Of a reader's option: options of its own that every command which opens captures has for it,
    such as ``("-m", "--map")``."""
    portable: bool = attrs.field(kw_only=True)
    """Whether a records file may set it. Only for what is about the bytes of the capture: never for
    a path, a pattern or a size that is allocated. By default, switches (bool) are portable."""

    @portable.default
    def _switches_are(self) -> bool:
        return self.type is bool

    def parse(self, text: str) -> Any:
        """The value of a text. Raises UsageError for a text that is not of the type."""
        try:
            if self.type is bool:
                return _BOOLEANS[text.lower()]
            if self.type is int:
                return _integer(text)
            value = self.type(text)
        except (ValueError, KeyError):
            raise self._refuse(text) from None
        if self.choices and value not in self.choices:
            raise UsageError(
                f"invalid {self.name} {value!r}{did_you_mean(value, self.choices)}",
                remedy=f"use one of {', '.join(filter(None, self.choices))}",
            )
        return value

    def accept(self, value: Any) -> Any:
        """A value given from Python, or that of a text. Raises UsageError for an invalid one."""
        if isinstance(value, str):
            return self.parse(value)
        if value is None and self.default is None:
            return None
        if self.type is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if type(value) is not self.type:
            raise self._refuse(value)
        return value

    def _refuse(self, value: Any) -> UsageError:
        return UsageError(
            f"option {self.name} takes {_KINDS.get(self.type, self.type.__name__)}, not {value!r}",
            remedy=f"{self.name}: {self.help}",
        )


LIMIT_OPTIONS = tuple(
    Option(field.name, field.default, field.metadata["help"], type=field.metadata["type"])
    for field in attrs.fields(Limits)
)
"""The limits as options: every reader has them."""

_BOOLEANS = {"1": True, "true": True, "yes": True, "on": True}
_BOOLEANS |= {"0": False, "false": False, "no": False, "off": False}
_KINDS = {bool: "yes or no", int: "an integer", float: "a number", str: "a string"}


_UNITS = {
    letter + tail: base**power
    for power, letter in enumerate("kmgt", 1)
    for tail, base in (("", 1000), ("b", 1000), ("i", 1024), ("ib", 1024))
}


def _integer(text: str) -> int:
    """The integer of a text, in any base, or with a unit: ``64M``, ``2GB``, ``1GiB``.

    Raises ValueError.
    """
    digits = text.rstrip("kmgtibKMGTIB")
    unit = text[len(digits) :].lower()
    return int(digits) * _UNITS[unit] if unit in _UNITS and digits.isdigit() else int(text, 0)


def parse_options(
    given: Mapping[str, Any], known: Iterable[Option], *, whose: str
) -> dict[str, Any]:
    """All known options with their values, given (as text or typed) or default.

    Raises UsageError for an unknown name, and for a value that does not fit.
    """
    options = {option.name: option for option in known}
    for name in given:
        if name not in options:
            raise UsageError(
                f"{whose} has no option {name!r}{did_you_mean(name, options)}",
                remedy=f"it has {', '.join(options) or 'none'}",
            )
    return {
        name: option.accept(given[name]) if name in given else option.default
        for name, option in options.items()
    }


class LiveSnapshot(Protocol):
    """A consistent copy of a file that another program is writing."""

    @property
    def data(self) -> bytes:
        """The copy, which a reader reads."""

    @property
    def generation(self) -> int:
        """A number that changes whenever the data do."""

    @property
    def attempts(self) -> int:
        """How often it was copied until it was consistent."""


class RecordWriter(Protocol):
    """What a Writer opens: it takes records one at a time, and writes their bytes into the sink."""

    def write(self, record: Any) -> None:
        """Write a record: one of the format's own, or its JSON (docs/records.md).

        Raises WriteRefusedError, with nothing of it written, where the format cannot hold it.
        """

    def close(self) -> None:
        """Write the bytes that are still buffered."""


class ExportSession(Protocol):
    """What an Exporter opens: it takes captures, and reports what it dropped.

    One that gives processes and threads other ids may have them as ``renumbered``, a mapping of
    each such id to their own, which goes into the report.
    """

    def write(self, capture: Capture) -> None:
        """Export one capture, which stays open until ``close()``."""

    def close(self) -> Mapping[str, int]:
        """Finish the output. Returns what was dropped, by name, with counts."""


def _named(field: str) -> Any:
    """A field that is the name of the descriptor, unless it is given."""
    return attrs.field(default=attrs.Factory(lambda made: getattr(made, field), takes_self=True))


def _suffixed(field: str) -> Any:
    """A field that is the descriptor's name as a suffix, unless it is given."""
    default = attrs.Factory(lambda made: (f".{getattr(made, field)}",), takes_self=True)
    return attrs.field(default=default)


@attrs.frozen(kw_only=True)
class Reference:
    """Another reader of a format: what it makes of a file can be predicted without it."""

    name: str
    """Its name for ``fxf verify --as``."""
    title: str
    """Which program it is, and of which version."""
    quirks: Callable[[], tuple[Quirk, ...]]
    """The table of all that it refuses, drops or misreads."""
    predict: Callable[[Capture, Prediction], None]
    """Adds to an empty prediction what it makes of a capture, of which it takes the bytes."""


@attrs.frozen(kw_only=True)
class Reader:
    """A format that can be read."""

    format: str
    """The name of the format, as in ``-f NAME``."""
    open: Callable[[Source, OpenRequest], Capture]
    """``open(source, request)`` gives a Capture."""
    title: str = _named("format")
    """What the format is, in one line without a full stop."""
    suffixes: tuple[str, ...] = _suffixed("format")
    """Suffixes of its files, each with its dot."""
    magic: bytes = b""
    """The first bytes of every file of the format, where it has any."""
    sniff: Callable[[Probe], Confidence] = attrs.field()
    """Says how sure it is that an input is of the format. By default CERTAIN for the ``magic``,
    NONE for any other bytes."""
    options: tuple[Option, ...] = ()
    """Options of the reader, beside the limits."""
    rules: Callable[[], Catalogue] | None = None
    """The catalogue of findings."""
    explain: Callable[[Source, int], list[FieldView]] | None = None
    """The record that holds a byte offset, as annotated fields."""
    sample: Callable[[int], bytes] | None = None
    """Makes a typical file of about that many bytes: what `fxf bench` measures."""
    shapes: Callable[[], Mapping[str, Callable[[int], bytes]]] | None = None
    """What makes files of about that many bytes and of an awkward shape each, by name: what
    `fxf bench --shapes` measures beside the sample, the damaged sample and zeros."""
    yardsticks: Mapping[str, Callable[[Path], float | None]] = attrs.field(factory=dict)
    """Other programs that read the format, by name: each reads all of a file, and gives the CPU
    seconds that it took; None where it is missing. What `fxf bench --stages` compares with."""
    snapshot: Callable[[Path], LiveSnapshot] | None = None
    """Copies a file that another program is writing, of a format whose captures are states
    (``Capture.entries``): what `fxf watch` looks at. Raises FxError where no copy is consistent."""
    references: tuple[Reference, ...] = ()
    """Other readers of the format, of which `fxf verify --as` predicts what they lose."""
    exempt: Mapping[str, str] = attrs.field(factory=dict)
    """Tests of its contract that do not apply to its samples, by name without ``test_``, each with
    the reason: `fxf plugins --check` skips them."""

    @sniff.default
    def _sniff_magic(self) -> Callable[[Probe], Confidence]:
        magic = self.magic

        def sniff(probe: Probe) -> Confidence:
            begins = magic and probe.head.startswith(magic)
            return Confidence.CERTAIN if begins else Confidence.NONE

        return sniff


@attrs.frozen(kw_only=True)
class Writer:
    """A format that can be written."""

    format: str
    """The name of the format, which is that of its reader."""
    open: Callable[[Sink, Mapping[str, Any], Diagnostics], RecordWriter]
    """``open(sink, options, diagnostics)`` gives a RecordWriter."""
    title: str = _named("format")
    """What the format is, in one line without a full stop."""
    suffixes: tuple[str, ...] = _suffixed("format")
    """Suffixes of outputs that choose it, each with its dot."""
    options: tuple[Option, ...] = ()
    """Options of the writer."""
    accepts: frozenset[str] = frozenset()
    """Tables, of which a capture of another format must have at least one for ``merge``."""
    merge: Callable[[Sink, Mapping[str, Any]], ExportSession] | None = None
    """Writes captures by their tables, whatever format filled them, several into one file."""
    extract: Callable[[Capture, Selection, Sink, Mapping[str, Any]], Mapping[str, int]] | None = (
        None
    )
    """Writes a part of a capture of its own format, with all that the part needs; gives what was
    left out, by name, with counts. A ``fxframework.model.selection.Omitted`` also says which rows
    of the part the output format cannot hold."""
    salvage: Callable[[Capture, Sink, Mapping[str, Any]], Iterator[Loss]] | None = None
    """Writes what is sound of a capture of its own format, and gives each loss as it meets it;
    where there is none, ``fxframework.kit.salvage.salvage_records`` does it."""
    exempt: Mapping[str, str] = attrs.field(factory=dict)
    """Tests of its contract that do not apply to its samples, by name without ``test_``, each with
    the reason: `fxf plugins --check` skips them."""

    def merges(self, tables: Iterable[str]) -> bool:
        """Whether a capture with these tables can be written by them."""
        return self.merge is not None and not self.accepts.isdisjoint(tables)


def never_the_same(reason: str) -> dict[str, str]:
    """``exempt`` of an exporter whose output differs each time, such as by the time of day."""
    tests = (
        "a_file_appears_whole_or_not_at_all",
        "another_process_exports_the_same",
        "output_does_not_depend_on_batches",
        "output_is_deterministic",
        "sessions_do_not_disturb_each_other",
    )
    return dict.fromkeys(tests, reason)


@attrs.frozen(kw_only=True)
class Exporter:
    """Writes captures in another form; found by its name and by what it accepts."""

    name: str
    """What ``fxf convert -t`` names."""
    accepts: frozenset[str] | str
    """Tables, of which a capture must have at least one, or the name of one format."""
    open: Callable[[Sink, Mapping[str, Any]], ExportSession]
    """``open(sink, options)`` gives a session."""
    title: str = _named("name")
    """What it gives, in one line without a full stop."""
    suffixes: tuple[str, ...] = _suffixed("name")
    """Suffixes of outputs that choose it, each with its dot."""
    options: tuple[Option, ...] = ()
    """Options of the exporter."""
    binary: bool = False
    """Whether the output is binary, and not for a terminal."""
    folders: bool = False
    """Whether the output may be a folder: the sink is then a ``fxframework.io.folder.Folder``."""
    streams: bool = True
    """Whether it takes batches of rows: False where it needs whole tables in memory."""
    exempt: Mapping[str, str] = attrs.field(factory=dict)
    """Tests of its contract that do not apply to its samples, by name without ``test_``, each with
    the reason: `fxf plugins --check` skips them."""

    def takes(self, format: str, tables: Iterable[str]) -> bool:
        """Whether a capture of this format with these tables can be exported."""
        if isinstance(self.accepts, str):
            return self.accepts == format
        return not self.accepts.isdisjoint(tables)

    def overlaps(self, other: Exporter) -> bool:
        """Whether some capture fits both."""
        if self.name != other.name:
            return False
        if isinstance(self.accepts, str) or isinstance(other.accepts, str):
            return self.accepts == other.accepts
        return not self.accepts.isdisjoint(other.accepts)


@attrs.frozen(kw_only=True)
class StepKind:
    """A kind of scenario step, ``PLUGIN.STEP``."""

    name: str
    """``PLUGIN.STEP``, as a scenario names it."""
    title: str
    """What it does, in one line."""
    parameters: Callable[[], type]
    """Gives the attrs class of its parameters (``fxframework.kit.steps``)."""
    run: Callable[..., Any]
    """``run(parameters, run)`` with such an object and a ``model.steps.Run``; gives an Outcome,
    or None where all went well. What it raises makes the step fail, and ends the scenario."""
    replays: frozenset[str] = frozenset()
    """Formats whose captures it replays: its parameters are then ``capture``, a file, and ``as``,
    the output."""
    sample: Callable[[], str] | None = None
    """Gives a scenario, as TOML, with such a step: what `fxf plugins --check` runs."""


@attrs.frozen(kw_only=True)
class DeviceKind:
    """A kind of emulated device that a scenario can declare.

    The one called ``target`` is what the others are parts of: a scenario has one.
    """

    name: str
    """What a scenario names in ``kind``."""
    title: str
    """What it is, in one line."""
    open: Callable[..., Any]
    """``open(parameters, run, name)`` gives the device; ``run.target`` is there already, and its
    ``snapshot(name)`` gives the bytes that the device holds. A device with a method ``image() ->
    bytes`` gives them itself, so that `capture.decode` can read `from` it; one with ``close()`` is
    closed at the end."""
    parameters: Callable[[], type] | None = None
    """Gives the attrs class of its parameters; None where it has none."""
    sample: Callable[[], str] | None = None
    """Gives a scenario, as TOML, with such a device: what `fxf plugins --check` runs."""


def lazy(target: str) -> Callable[..., Any]:
    """A function that imports ``module:attribute`` when it is first called, and calls it.

    It raises PluginError where there is no such attribute, or it is a class that lacks methods
    which it must define. A function with an import in it does the same, and type checkers see
    through it.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        found = _imported(target)
        lacking = sorted(getattr(found, "__abstractmethods__", ()))
        if lacking:
            raise PluginError(
                f"{target} cannot be used: it does not define {', '.join(lacking)}",
                remedy="define the missing methods",
            )
        return found(*args, **kwargs)

    call.__name__ = target.rpartition(":")[2]
    call.__qualname__ = target
    return call


def lazy_type(target: str) -> Callable[[], type]:
    """A function that gives the class ``module:attribute``, imported when it is first asked for.

    It raises PluginError where there is none.
    """

    def give() -> type:
        found: type = _imported(target)
        return found

    return give


def _imported(target: str) -> Any:
    module, _, attribute = target.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # a package that the module imports
        raise PluginError(
            f"a descriptor names {target}, but there is no module {error.name}"
        ) from None
    except AttributeError:
        if hasattr(sys.modules.get(module), attribute):
            raise
        raise PluginError(
            f"a descriptor names {target}, but {module} has no {attribute!r}"
        ) from None

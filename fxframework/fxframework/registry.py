"""Descriptors, which plugins register. They import nothing heavy; code loads on first use."""

from __future__ import annotations

import functools
import importlib
import operator
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Protocol, cast

import attrs

from fxframework.errors import PluginError, UsageError, did_you_mean
from fxframework.io.limits import MOST, Limits

if TYPE_CHECKING:
    from pathlib import Path

    from fxframework.errors import Catalogue
    from fxframework.io.sink import Sink
    from fxframework.io.source import Source
    from fxframework.io.words import FieldView
    from fxframework.kit.salvage import Loss
    from fxframework.model.capture import Capture, OpenRequest
    from fxframework.model.diagnostics import Diagnostics
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
    "StepKind",
    "Writer",
    "exporters_of",
    "lazy",
    "lazy_type",
    "no_parts",
    "nondeterministic",
    "parse_options",
    "resolved",
    "step_kinds",
]

HEAD = 1 << 16
"""Number of first bytes of an input that a sniffer sees."""
LEAST_INTEGER = -(1 << 63)
"""The least integer that an option takes."""
MOST_INTEGER = (1 << 64) - 1
"""The greatest integer that an option takes, if it does not say otherwise."""
EVERY_CAPTURE = frozenset({"diagnostics"})
"""``accepts`` of an exporter that takes any capture: every capture has this table."""


class Confidence(IntEnum):
    """How sure a sniffer is."""

    NONE = 0
    """The input has another format."""
    POSSIBLE = 1
    """The format cannot be excluded."""
    LIKELY = 2
    """The input looks like the format."""
    CERTAIN = 3
    """A magic and a header are valid."""


@attrs.frozen(kw_only=True)
class Probe:
    """The argument of a sniffer: first bytes, size and file name of an input."""

    head: bytes
    """The first bytes, at most ``HEAD`` of them."""
    size: int
    """Bytes of the whole (unpacked) input."""
    name: str
    """The name of the input; may be empty."""

    def has_suffix(self, suffixes: Iterable[str]) -> bool:
        """Return whether the file name ends in one of the suffixes, in any case."""
        name = os.path.basename(self.name).lower()  # noqa: PTH119 (a name, not always a path)
        return any(name.endswith(suffix) for suffix in suffixes)


@attrs.frozen
class Option:
    """An option that ``-o NAME=VALUE`` sets: ``Option("depth", 64, "how deep it looks")``."""

    name: str
    """Its name: lower case, digits and underscores."""
    default: Any
    """Its value if it is not given. None, which nobody can give, needs a ``type``."""
    help: str
    """What it does, in one line without a full stop."""
    type: type = attrs.field(
        default=attrs.Factory(lambda option: type(option.default), takes_self=True), kw_only=True
    )
    """bool, int, float or str; by default the type of ``default``."""
    choices: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    """The valid values; empty if all are."""
    most: int = attrs.field(default=MOST_INTEGER, kw_only=True)
    """The greatest integer that it takes; the least is -2^63."""
    flags: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    """For a reader's option: command-line options such as ``("-m", "--map")`` that set it, in
    every command that opens captures."""
    portable: bool = attrs.field(kw_only=True)
    """Whether a records file may set it. Only for options about the bytes of the capture, never
    for a path, a pattern or an allocated size. By default, switches (bool) are portable."""

    @portable.default
    def _switches_are(self) -> bool:
        return self.type is bool

    def parse(self, text: str) -> Any:
        """Convert a text to a value. Raises UsageError for an invalid text."""
        try:
            if self.type is bool:
                return _BOOLEANS[text.lower()]
            if self.type is int:
                return self._checked(_integer(text))
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
        """Check a value given from Python, or convert a text. Raises UsageError if invalid."""
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if isinstance(value, str):
            return self.parse(value)
        if value is None and self.default is None:
            return None
        if self.type is float and isinstance(value, int) and not isinstance(value, bool):
            try:
                return float(value)
            except OverflowError:
                raise self._refuse("a number of more than 308 digits") from None
        if type(value) is not self.type:
            raise self._refuse(value)
        if self.type is int:
            return self._checked(cast("int", value))
        return value

    def _checked(self, value: int) -> int:
        """Return an integer that the option can take. Raises UsageError for any other."""
        if LEAST_INTEGER <= value <= self.most:
            return value
        bound = f"at least {LEAST_INTEGER}"
        if value > self.most:
            bound = f"at most {self.most}"
        raise UsageError(
            f"option {self.name} takes an integer of {bound}", remedy=f"{self.name}: {self.help}"
        )

    def _refuse(self, value: Any) -> UsageError:
        """Return the error for a value of another type."""
        return UsageError(
            f"option {self.name} takes {_KINDS.get(self.type, self.type.__name__)}, not {value!r}",
            remedy=f"{self.name}: {self.help}",
        )


SHORTEN = Option(
    "shorten",
    "",
    "cxx: names of C++ functions without the arguments of templates and the types of parameters",
    choices=("", "cxx"),
)
"""An option of exporters that print names. Names in the captures that the host gives to an exporter
with this option are short; the exporter itself need not do anything."""


LIMIT_OPTIONS = tuple(
    Option(
        field.name, field.default, field.metadata["help"], type=field.metadata["type"], most=MOST
    )
    for field in attrs.fields(Limits)
)
"""The limits as options, which every reader has."""

_BOOLEANS = {"1": True, "true": True, "yes": True, "on": True}
_BOOLEANS |= {"0": False, "false": False, "no": False, "off": False}
_KINDS = {bool: "yes or no", int: "an integer", float: "a number", str: "a string"}
_UNITS: dict[str, int] = {
    letter + tail: base**power
    for power, letter in enumerate("kmgt", 1)
    for tail, base in (("", 1000), ("b", 1000), ("i", 1024), ("ib", 1024))
}
"""Multipliers of units: 1000 for ``k`` and ``kb``, 1024 for ``ki`` and ``kib``, and so on."""


def _integer(text: str) -> int:
    """Parse an integer in any base, or with a unit: ``64M``, ``2GB``, ``1GiB``.

    Raises ValueError.
    """
    digits = text.rstrip("kmgtibKMGTIB")
    unit = text[len(digits) :].lower()
    if unit in _UNITS and digits.isdigit():
        return int(digits) * _UNITS[unit]
    return int(text, 0)  # also hexadecimal numbers that end in b, such as 0xb


def parse_options(
    given: Mapping[str, Any], known: Iterable[Option], *, whose: str
) -> dict[str, Any]:
    """Return all known options with their values: given (as text or typed) or default.

    Raises UsageError for an unknown name, and for an invalid value.
    """
    options = {option.name: option for option in known}
    for name in given:
        if name not in options:
            raise UsageError(
                f"{whose} has no option {name!r}{did_you_mean(name, options)}",
                remedy=f"it has {', '.join(options) or 'none'}",
            )
    values = {}
    for name, option in options.items():
        values[name] = option.default
        if name in given:
            values[name] = option.accept(given[name])
    return values


class LiveSnapshot(Protocol):
    """A consistent copy of a file that another program is writing."""

    @property
    def data(self) -> bytes:
        """The bytes of the copy, for a reader."""

    @property
    def generation(self) -> int:
        """A number that changes with every change of the data."""

    @property
    def attempts(self) -> int:
        """Number of copies made until one was consistent."""


class RecordWriter(Protocol):
    """The result of ``Writer.open``: writes records, one at a time, to the sink."""

    def write(self, record: Any) -> None:
        """Write a record, given as an object of the format or as JSON (docs/records.md).

        Raises WriteRefusedError, and writes nothing, if the format cannot represent it.
        """

    def close(self) -> None:
        """Write the remaining buffered bytes."""


class ExportSession(Protocol):
    """The result of ``Exporter.open``: writes captures, and reports what it dropped.

    A session that changes ids of processes and threads may have an attribute ``renumbered``, a
    mapping of new ids to original ones, for the report. One that needs to know of several captures
    when they begin may have a method ``expect(capture)``, which gets each before the first is
    written.
    """

    def write(self, capture: Capture) -> None:
        """Export one capture, which stays open until ``close()``."""

    def close(self) -> Mapping[str, int]:
        """Finish the output; return the counts of what could not be written, by name."""


def _defaults_to_name(field: str) -> Any:
    """Return a field whose default is the name of the descriptor."""
    default = attrs.Factory(lambda descriptor: getattr(descriptor, field), takes_self=True)
    return attrs.field(default=default)


def _defaults_to_suffix(field: str) -> Any:
    """Return a field whose default is the descriptor's name as a suffix."""
    default = attrs.Factory(lambda descriptor: (f".{getattr(descriptor, field)}",), takes_self=True)
    return attrs.field(default=default)


@attrs.frozen(kw_only=True)
class Reader:
    """A format that can be read."""

    format: str
    """The name of the format, as in ``-f NAME``."""
    open: Callable[[Source, OpenRequest], Capture]
    """``open(source, request)`` returns a Capture."""
    title: str = _defaults_to_name("format")
    """What the format is, in one line without a full stop."""
    suffixes: tuple[str, ...] = _defaults_to_suffix("format")
    """Suffixes of its files, including the dot."""
    magic: bytes = b""
    """The first bytes of every file of the format, if fixed."""
    sniff: Callable[[Probe], Confidence] = attrs.field()
    """Returns the confidence that an input has the format. By default CERTAIN for inputs that
    begin with ``magic``, else NONE."""
    options: tuple[Option, ...] = ()
    """Options of the reader, in addition to the limits."""
    rules: Callable[[], Catalogue] | None = None
    """Returns the catalogue of findings."""
    explain: Callable[[Source, int], list[FieldView]] | None = None
    """Returns the record at a byte offset as annotated fields."""
    sample: Callable[[int], bytes] | None = None
    """Makes a typical file of about that many bytes, for `fxf plugins --check` and tests."""
    snapshot: Callable[[Path], LiveSnapshot] | None = None
    """Copies a file that another program is writing, for `fxf watch`; only for formats whose
    captures are states (``Capture.entries``). Raises FxError if no copy is consistent."""
    exempt: Mapping[str, str] = attrs.field(factory=dict)
    """Contract tests that `fxf plugins --check` skips, by name without ``test_``, with reasons."""

    @sniff.default
    def _sniff_magic(self) -> Callable[[Probe], Confidence]:
        magic = self.magic

        def sniff(probe: Probe) -> Confidence:
            if magic and probe.head.startswith(magic):
                return Confidence.CERTAIN
            return Confidence.NONE

        return sniff


@attrs.frozen(kw_only=True)
class Writer:
    """A format that can be written."""

    format: str
    """The name of the format, the same as the reader's."""
    open: Callable[[Sink, Mapping[str, Any], Diagnostics], RecordWriter]
    """``open(sink, options, diagnostics)`` returns a RecordWriter."""
    title: str = _defaults_to_name("format")
    """What the format is, in one line without a full stop."""
    suffixes: tuple[str, ...] = _defaults_to_suffix("format")
    """Suffixes of outputs that select it, including the dot."""
    options: tuple[Option, ...] = ()
    """Options of the writer."""
    accepts: frozenset[str] | str = frozenset()
    """Tables of which a capture must have at least one for ``merge``, or the name of a format."""
    merge: Callable[[Sink, Mapping[str, Any]], ExportSession] | None = None
    """Opens a session that writes captures, as ``accepts`` says, into one file."""
    extract: Callable[[Capture, Selection, Sink, Mapping[str, Any]], Mapping[str, int]] | None = (
        None
    )
    """Writes a part of a capture of its own format, with everything the part needs; returns the
    counts of what is outside of the part, by name. ``fxframework.model.selection.Omitted`` also
    counts what the output format cannot represent."""
    salvage: Callable[[Capture, Sink, Mapping[str, Any]], Iterator[Loss]] | None = None
    """Writes the valid records of a capture of its own format, and yields each loss. The default
    is ``fxframework.kit.salvage_records``."""
    lossless: bool = False
    """Whether the records of any capture, written unchanged and with the options of that capture,
    give its bytes. Such a conversion is a copy of the file."""
    derived: Callable[[], frozenset[str]] = frozenset
    """Returns the keys of record JSON that follow from others, so that they are not written."""
    exempt: Mapping[str, str] = attrs.field(factory=dict)
    """Contract tests that `fxf plugins --check` skips, by name without ``test_``, with reasons."""

    def merges(self, format: str, tables: Iterable[str]) -> bool:
        """Return whether ``merge`` accepts a capture of a format with these tables."""
        if self.merge is None:
            return False
        if isinstance(self.accepts, str):
            return self.accepts == format
        return not self.accepts.isdisjoint(tables)


def no_parts(format: str, path: str, remedy: str) -> UsageError:
    """Return the error for a part of a capture that cannot be written in its own format."""
    return UsageError(
        f"no part of {format} files can be extracted: it would lack what its records depend on",
        path=path,
        remedy=remedy,
    )


def nondeterministic(reason: str) -> dict[str, str]:
    """Return ``exempt`` for an exporter whose output varies, for example with the time of day."""
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
    """Its name, as in ``fxf convert -t NAME``."""
    accepts: frozenset[str] | str
    """Tables of which a capture must have at least one, or the name of a format."""
    open: Callable[[Sink, Mapping[str, Any]], ExportSession]
    """``open(sink, options)`` returns a session."""
    title: str = _defaults_to_name("name")
    """What it writes, in one line without a full stop."""
    suffixes: tuple[str, ...] = _defaults_to_suffix("name")
    """Suffixes of outputs that select it, including the dot."""
    options: tuple[Option, ...] = ()
    """Options of the exporter."""
    binary: bool = False
    """Whether the output is binary, and not for a terminal."""
    folders: bool = False
    """Whether the output may be a folder: the sink is then a ``fxframework.io.folder.Folder``."""
    streams: bool = True
    """Whether it processes batches of rows; False if it needs whole tables in memory."""
    rows: frozenset[str] = attrs.field()
    """Tables of which one must have a row, otherwise there is nothing to write and the conversion
    is refused. By default the tables that it accepts; none if it accepts a format or any capture.
    """
    extra: str = ""
    """The extra of fxframework that it needs; may be empty."""
    writes: frozenset[str] = frozenset()
    """Columns that it writes, of which its contract tries each; empty if it does not say."""
    exempt: Mapping[str, str] = attrs.field(factory=dict)
    """Contract tests that `fxf plugins --check` skips, by name without ``test_``, with reasons."""

    @rows.default
    def _accepted_tables(self) -> frozenset[str]:
        if isinstance(self.accepts, str) or self.accepts == EVERY_CAPTURE:
            return frozenset()
        return frozenset(self.accepts)

    def takes(self, format: str, tables: Iterable[str]) -> bool:
        """Return whether it accepts a capture of this format with these tables."""
        if isinstance(self.accepts, str):
            return self.accepts == format
        return not self.accepts.isdisjoint(tables)

    def overlaps(self, other: Exporter) -> bool:
        """Return whether both have the same name and accept some capture in common."""
        if self.name != other.name:
            return False
        if isinstance(self.accepts, str) or isinstance(other.accepts, str):
            return self.accepts == other.accepts
        return not self.accepts.isdisjoint(other.accepts)


def exporters_of(formats: Iterable[str], **fields: Any) -> list[Exporter]:
    """Return an exporter for each of some formats; ``fields`` are all others of ``Exporter``."""
    return [Exporter(accepts=format, **fields) for format in formats]


@attrs.frozen(kw_only=True)
class StepKind:
    """A kind of scenario step, ``PLUGIN.STEP``."""

    name: str
    """Its name in scenarios, ``PLUGIN.STEP``."""
    title: str
    """What it does, in one line."""
    parameters: Callable[[], type]
    """Returns the attrs class of its parameters (``fxframework.kit.parameter``)."""
    run: Callable[..., Any]
    """``run(parameters, run)`` with such an object and a ``kit.steps.Run`` returns an Outcome, or
    None for success. If it raises, the step fails and the scenario ends."""
    replays: frozenset[str] = frozenset()
    """Formats whose captures it replays; it must then have the parameters ``capture``, a file,
    and ``as``, the output."""
    sample: Callable[[], str] | None = None
    """Returns a scenario, as TOML, with such a step, for `fxf plugins --check`."""


def step_kinds(
    module: str,
    titles: Mapping[str, str],
    *,
    sample: str | None = None,
    replays: Iterable[str] = (),
) -> list[StepKind]:
    """Return the kinds of the steps that a module has, from the title of each by its name.

    The step ``heart.beat`` is the class ``HeartBeat`` of the module: the class of its parameters,
    with a method ``do(run)`` that returns an Outcome, or None for success. A step named ``replay``
    replays captures of the formats ``replays``. ``sample`` is the ``module:attribute`` of a
    scenario with all other steps.
    """
    kinds = []
    for name, title in titles.items():
        class_name = "".join(map(str.capitalize, re.split(r"[._]", name)))
        kind = StepKind(
            name=name,
            title=title,
            parameters=lazy_type(f"{module}:{class_name}"),
            run=lazy(f"{module}:{class_name}.do"),
        )
        if name.endswith(".replay"):
            kind = attrs.evolve(kind, replays=frozenset(replays))
        elif sample:
            kind = attrs.evolve(kind, sample=functools.partial(_imported, sample))
        kinds.append(kind)
    return kinds


@attrs.frozen(kw_only=True)
class DeviceKind:
    """A kind of emulated device that a scenario can declare.

    The kind named ``target`` is the machine that the other devices belong to; a scenario has one.
    """

    name: str
    """Its name, as in ``kind`` of a scenario."""
    title: str
    """What it is, in one line."""
    open: Callable[..., Any]
    """``open(parameters, run, name)`` returns the device; ``run.target`` exists already. The bytes
    of a device, which `capture.decode` reads, come from its method ``image() -> bytes``, or else
    from ``snapshot(name)`` of the target. A device with ``close()`` is closed at the end."""
    parameters: Callable[[], type] | None = None
    """Returns the attrs class of its parameters; None if it has no parameters."""
    sample: Callable[[], str] | None = None
    """Returns a scenario, as TOML, with such a device, for `fxf plugins --check`."""


def lazy(target: str) -> Callable[..., Any]:
    """Return a function that imports ``module:attribute`` when called, and calls it.

    An attribute of a class is ``module:class.attribute``. The function raises PluginError if there
    is no such attribute, or if it is an abstract class.
    A function that contains an import does the same and is visible to type checkers.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        function = _imported(target)
        missing_methods = sorted(getattr(function, "__abstractmethods__", ()))
        if missing_methods:
            raise PluginError(
                f"{target} cannot be used: it does not define {', '.join(missing_methods)}",
                remedy="define the missing methods",
            )
        return function(*args, **kwargs)

    call.__name__ = target.rpartition(":")[2]
    call.__qualname__ = target
    return call


def resolved(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what a ``lazy`` function imports, or the function itself. Raises PluginError."""
    target = getattr(function, "__qualname__", "")
    if ":" not in target:  # ``lazy`` puts its target there; no other qualified name has a colon
        return function
    imported_function: Callable[..., Any] = _imported(target)
    return imported_function


def lazy_type(target: str) -> Callable[[], type]:
    """Return a function that imports and returns the class ``module:attribute``.

    The function raises PluginError if there is no such class.
    """

    def load() -> type:
        imported_type: type = _imported(target)
        return imported_type

    return load


def _imported(target: str) -> Any:
    """Import and return ``module:attribute``. Raises PluginError if there is none."""
    module, _, attribute = target.partition(":")
    try:
        return operator.attrgetter(attribute)(importlib.import_module(module))
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module exists, but it imports one that does not
        raise PluginError(
            f"a descriptor names {target}, but there is no module {error.name}"
        ) from None
    except AttributeError:
        if hasattr(sys.modules.get(module), attribute):
            raise  # the attribute exists; the error comes from elsewhere
        raise PluginError(
            f"a descriptor names {target}, but {module} has no {attribute!r}"
        ) from None

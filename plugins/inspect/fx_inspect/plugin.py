"""Hook implementations of Inspect. Cheap to import: everything else loads at first use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fxframework import hookimpl
from fxframework.errors import Catalogue
from fxframework.registry import (
    Confidence,
    Exporter,
    Option,
    Probe,
    Reader,
    StepKind,
    Writer,
    lazy,
    step_kinds,
)

if TYPE_CHECKING:
    import click

SUFFIXES = (".inspect", ".vmo")
MAGICS = (b"INSP", b"PSNI")
"""The magic of a header, and as early writers may have written it."""


def sniff(probe: Probe) -> Confidence:
    """Return CERTAIN for the magic in a sound header of version 0 to 2, LIKELY in an odd one.

    POSSIBLE for any ``.inspect`` file, and for a ``.vmo`` file that is empty, or has only the magic
    or the type of a header.
    """
    head = probe.head
    # Other files are refused without the declared format.
    if head[4:8] not in MAGICS and not probe.has_suffix(SUFFIXES):
        return Confidence.NONE
    from fx_inspect import format as wire

    def by_suffix(suffixes: tuple[str, ...]) -> Confidence:
        return Confidence.POSSIBLE if probe.has_suffix(suffixes) else Confidence.NONE

    own_suffix = SUFFIXES[:1]
    if not probe.size:
        return by_suffix(SUFFIXES)
    if len(head) < 8:
        return by_suffix(own_suffix)
    legacy = wire.is_legacy(head)
    is_header = legacy or head[1] == wire.BlockType.HEADER
    magic = head[4:8]
    if magic != wire.MAGIC and not (legacy and magic == wire.SWAPPED_MAGIC):
        return by_suffix(SUFFIXES if is_header else own_suffix)
    if not is_header:
        # Text may contain these letters at this place.
        return by_suffix(SUFFIXES)
    return Confidence.CERTAIN if magic == wire.MAGIC and _sound(head) else Confidence.LIKELY


def _sound(head: bytes) -> bool:
    """Return whether writers of version 0, 1 or 2 write such a header."""
    from fx_inspect import format as wire

    if len(head) < wire.HEADER_BYTES:
        return False
    if wire.is_legacy(head):
        return head[:4] == b"\x20\0\0\0"
    if head[0] not in (0, 1) or wire.version_of(head) > wire.MAX_VERSION:
        return False
    if not head[0]:
        return True
    if len(head) < wire.HEADER_BYTES_SIZE:
        return False
    size = wire.VMO_SIZE.get(head, 0)
    return wire.HEADER_BYTES_SIZE <= size <= wire.MAX_VMO and not size % wire.UNIT


# --- Options -----------------------------------------------------------------------------


class _Links(Option):
    """A folder as text or, from Python, a mapping of links' contents to files or bytes."""

    def accept(self, value: Any) -> Any:
        """Return a value given from Python, or the value of a text; UsageError for others."""
        return value if isinstance(value, Mapping) else super().accept(value)


READER_OPTIONS = (
    _Links(
        name="links",
        type=str,
        default="",
        help="folder with the trees that links refer to, one file named after each link's "
        "content, with or without the suffix .inspect or .vmo",
    ),
    Option("link_depth", 16, "longest chain of links to follow"),
)
METADATA = (
    Option("moniker", "", "moniker of the component; default: the file name up to its first dot"),
    Option("name", "", "name of the tree; default: the file name"),
    Option("component_url", "", "URL of the component"),
    Option("timestamp", 0, "time of the snapshot in nanoseconds, which the file does not contain"),
    Option("escrowed", False, "mark the tree as escrowed"),
)
SELECTORS = Option("selectors", False, "list the selectors of all properties instead")
LOSSLESS = Option(
    "lossless", False, "add keys for the bytes of invalid UTF-8 and for the bits of NaN"
)
REPEAT = Option("repeat", False, "write every occurrence of a string of 1 KiB or more in full")
ALL = Option("all", False, "write all values of every snapshot, not only changed ones")


def _rules() -> Catalogue:
    from fx_inspect.rules import RULES

    return RULES


# --- Hooks -------------------------------------------------------------------------------


@hookimpl
def fx_readers() -> Iterable[Reader]:
    """Inspect VMOs of versions 0, 1 and 2."""
    return [
        Reader(
            format="inspect",
            title="Fuchsia Inspect VMO",
            suffixes=SUFFIXES,
            sniff=sniff,
            open=lazy("fx_inspect.read.capture:InspectCapture"),
            options=READER_OPTIONS,
            rules=_rules,
            explain=lazy("fx_inspect.read.explain:explain"),
            sample=lazy("fx_inspect.sample:sample"),
            snapshot=lazy("fx_inspect.cli:snapshot"),
        )
    ]


@hookimpl
def fx_writers() -> Iterable[Writer]:
    """Inspect VMOs, block by block.

    There is no ``extract``: a VMO is one tree without times, and its blocks refer to each other.
    """
    return [
        Writer(
            format="inspect",
            title="Fuchsia Inspect VMO",
            suffixes=SUFFIXES,
            open=lazy("fx_inspect.write.writer:open_writer"),
            lossless=True,
            exempt={
                "many_records_come_back": "each block has one index",
                "wrong_values_are_refused_or_take_effect": "the index of a block may be left out",
            },
            salvage=lazy("fx_inspect.write.salvage:salvage"),
        )
    ]


@hookimpl
def fx_exporters() -> Iterable[Exporter]:
    """The tree as text and JSON, and the changes between snapshots."""
    # Options of the text exporters, and of the exact ones.
    text = (*METADATA, SELECTORS, REPEAT)
    exact = (LOSSLESS, REPEAT)
    tree = lazy("fx_inspect.export.tree:open_tree")
    json = lazy("fx_inspect.export.json:JsonExport")
    tree_json = lazy("fx_inspect.export.tree_json:TreeJsonExport")
    series = lazy("fx_inspect.export.series:SeriesExport")
    selectors = lazy("fx_inspect.export.tree:SelectorExport")
    exporters = (
        ("tree", "the tree, as iquery prints it", ".tree", tree, text),
        ("text", "the tree, as iquery prints it", ".txt", tree, text),
        ("json", "JSON, as iquery and `ffx inspect` give it", ".json", json, (*METADATA, REPEAT)),
        ("tree-json", "the tree with all types, as JSON", ".tree.json", tree_json, exact),
        ("series", "values of several snapshots, as CSV", ".series.csv", series, (ALL, REPEAT)),
        ("selectors", "selectors of all properties", ".selectors", selectors, ()),
    )
    return [
        Exporter(
            name=name,
            title=title,
            accepts="inspect",
            suffixes=(suffix,),
            open=open,
            options=options,
        )
        for name, title, suffix, open, options in exporters
    ]


@hookimpl
def fx_step_kinds() -> Iterable[StepKind]:
    """Steps that change a tree in a VMO, and that copy it."""
    titles = {
        "inspect.start": "Begin a tree in a VMO, of a version and up to a size.",
        "inspect.create": "Make a node, a value, or a link to another tree.",
        "inspect.set": "Set a value.",
        "inspect.add": "Add to a number, or subtract from it.",
        "inspect.insert": "Count a value in a histogram.",
        "inspect.delete": "Delete a value.",
        "inspect.move": "Make a value a child of another node.",
        "inspect.begin": "Begin a transaction.",
        "inspect.end": "End a transaction.",
        "inspect.snapshot": "Keep a copy of a VMO, as a reader gets it.",
        "inspect.freeze": "Keep a frozen copy of a VMO.",
        "inspect.trees": "Keep the trees that links name.",
        "inspect.thread": "Start a thread that changes a tree.",
    }
    return step_kinds("fx_inspect.steps", titles, sample="fx_inspect.sample:SCENARIO")


@hookimpl
def fx_cli(cli: click.Group) -> None:
    """Commands of Inspect."""
    from fx_inspect.cli import add_commands

    add_commands(cli)

"""What is stored of an input: its record JSON, its tables and its findings, a line for each part.

Only what every user has is asked for: ``Host.open``, ``records_json``, ``table``, ``diagnostics``.
A line is the name of a part and its values as JSON, with a tab between: ``records``, each column of
a table with its type (``slices.ts int64``), ``findings`` (code, offset, severity). Lines that begin
with ``input`` begin the parts of the next input.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_pcapng import plugin as pcapng
from fxframework import hookimpl
from fxframework.errors import FxError
from fxframework.host import Host
from fxframework.model.capture import Capture
from fxframework.model.strings import TextColumn
from fxframework.model.table import Table
from fxframework.registry import Reader

from ..wire.specimen import BLOCKS, ITEMS, NOTES
from .inputs import Input, corpora, large

__all__ = ["CORPORA", "differences", "host", "load", "made", "store"]

FOLDER = Path(__file__).parent / "outputs"
SLICE = 1000
"""Values of a large input that share a digest."""
SHOWN = 8
"""Differences that a failing comparison shows."""
WIDEST = 300
"""Characters of a value that it shows."""
Parts = dict[str, str]
"""The values of each part of an input's output, as JSON."""
Render = Callable[[list[Any]], str]


class _Specimens:
    """A plugin with the declared formats of the tests."""

    @hookimpl
    def fx_readers(self) -> list[Reader]:
        return [BLOCKS.reader, ITEMS.reader, NOTES.reader]


CORPORA = sorted(path.name.removesuffix(".txt.xz") for path in FOLDER.glob("*.txt.xz"))
"""The names of the corpora that are stored."""


def made(corpus: str) -> str:
    """The outputs of the inputs of a corpus, as read now."""
    if corpus in large():
        return "".join(_lines([large()[corpus]], _digests))
    return "".join(_lines(corpora()[corpus], json.dumps))


def host() -> Host:
    """The bundled plugins, a worked one, and the declared formats of the tests."""
    made = Host()
    made.register(pcapng, name="pcapng")
    made.register(_Specimens(), name="specimens")
    return made


def _lines(inputs: Iterable[Input], render: Render) -> Iterator[str]:
    reading = host()
    for input in inputs:
        digest = hashlib.sha256(input.data).hexdigest()[:16]
        yield f"input\t{json.dumps([input.name, digest])}\n"
        for part, values in _parts(reading, input, render):
            yield f"{part}\t{values}\n"


def _parts(host: Host, input: Input, render: Render) -> Iterator[tuple[str, str]]:
    """The parts of an output. Where reading ends in an error, its code and offset are the last."""
    try:
        with host.open(input.data, format=input.format, options=input.options) as capture:
            yield "format", json.dumps(capture.format)
            yield "records", _records(capture, render)
            for name in capture.tables:
                if name != "diagnostics":
                    yield from _columns(capture.table(name), render)
            yield from _findings(capture, render)
    except FxError as error:
        yield "error", json.dumps([error.code, error.offset])


def _records(capture: Capture, render: Render) -> str:
    """The lines of record JSON; in a list of their own as they are, since each byte counts."""
    lines = b"".join(capture.records_json()).decode().splitlines()
    return render(lines) if render is _digests else f"[{','.join(lines)}]"


def _columns(table: Table, render: Render) -> Iterator[tuple[str, str]]:
    """The columns of a table with rows."""
    for name in table.columns if len(table) else ():
        column = table[name]
        kind = "text" if isinstance(column, TextColumn) else column.dtype
        if isinstance(column, TextColumn) or table.schema.column(name).kind == "code":
            values: list[Any] = table.texts(name)
        else:
            values = _numbers(column)
        yield f"{table.name}.{name} {kind}", render(values)


def _numbers(column: NDArray[Any]) -> list[Any]:
    """The values of a column; of numbers that are not finite the bits, which JSON cannot have."""
    values = column.tolist()
    if column.dtype.kind == "f":
        bits = column.astype("<f8").view("<u8")
        for row in np.flatnonzero(~np.isfinite(column)).tolist():
            values[row] = hex(bits[row])
    return values


def _findings(capture: Capture, render: Render) -> Iterator[tuple[str, str]]:
    """The findings in the order in which they are made, and how many there are of each code."""
    capture.scan()
    found = [[each.code, each.offset, each.severity.name] for each in capture.diagnostics]
    if found:
        yield "findings", render(found)
        yield "counts", json.dumps(dict(sorted(capture.diagnostics.counts.items())))


def _digests(values: list[Any]) -> str:
    """A digest for each slice of values: as JSON, a list of strings."""
    slices = (values[at : at + SLICE] for at in range(0, len(values), SLICE))
    return json.dumps(
        [hashlib.sha256(json.dumps(each).encode()).hexdigest()[:8] for each in slices]
    )


# --- Stored and compared --------------------------------------------------------------------------


def store(corpus: str, text: str) -> None:
    """Store the outputs of a corpus."""
    FOLDER.mkdir(exist_ok=True)
    packed = lzma.compress(text.encode(), preset=9)
    (FOLDER / f"{corpus}.txt.xz").write_bytes(packed)


def load(corpus: str) -> str:
    """The stored outputs of a corpus."""
    return lzma.decompress((FOLDER / f"{corpus}.txt.xz").read_bytes()).decode()


def differences(stored: str, found: str) -> list[str]:
    """What differs: input, part, the first row that does, and its values; the first few."""
    old, new = _by_input(stored), _by_input(found)
    said = [f"{name}: not among the inputs any more" for name in old.keys() - new.keys()]
    said += [f"{name}: nothing is stored of it" for name in new.keys() - old.keys()]
    for name, parts in new.items():
        if parts != old.get(name, parts):
            said += [f"{name}: {each}" for each in _of_parts(old[name], parts)]
    more = len(said) - SHOWN
    return said[:SHOWN] + ([f"… and {more} more"] if more > 0 else [])


def _by_input(text: str) -> dict[str, Parts]:
    """The parts of each input, by its name."""
    inputs: dict[str, Parts] = {}
    for line in text.split("\n")[:-1]:
        part, _, values = line.partition("\t")
        if part == "input":
            name, digest = json.loads(values)
            inputs[name] = parts = {"bytes": json.dumps(digest)}
        else:
            parts[part] = values
    return inputs


def _of_parts(stored: Parts, found: Parts) -> Iterator[str]:
    if stored["bytes"] != found["bytes"]:
        yield "the input has other bytes than when its output was stored"
        return
    for part in stored.keys() | found.keys():
        old, new = stored.get(part), found.get(part)
        if old is None:
            yield f"{part}: new"
        elif new is None:
            yield f"{part}: gone"
        elif old != new:
            yield f"{part}: {_of_values(json.loads(old), json.loads(new))}"


def _of_values(old: Any, new: Any) -> str:
    """How the values of a part differ."""
    if old == new:
        return "the same values, written in another way"
    if not (isinstance(old, list) and isinstance(new, list)):
        return f"stored {_short(old)}, found {_short(new)}"
    pairs = enumerate(zip(old, new, strict=False))
    rows = [row for row, (one, other) in pairs if one != other]
    if not rows:
        return f"stored {len(old)} rows, found {len(new)}, which agree as far as they go"
    row = rows[0]
    order = " (the same in another order)" if _sorted(old) == _sorted(new) else ""
    count = f"; {len(rows)} of {len(old)} rows differ{order}, now there are {len(new)}"
    return f"row {row}: stored {_short(old[row])}, found {_short(new[row])}{count}"


def _sorted(values: list[Any]) -> list[str]:
    return sorted(json.dumps(value) for value in values)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= WIDEST else f"{text[:WIDEST]}…"

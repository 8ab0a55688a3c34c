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

__all__ = ["CORPORA", "differences", "host", "load", "outputs_of", "store"]

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


def outputs_of(corpus: str) -> str:
    """Read the inputs of a corpus, and return the lines of their outputs."""
    large_input = large().get(corpus)
    if large_input is not None:
        return "".join(_lines([large_input], _digests))
    return "".join(_lines(corpora()[corpus], json.dumps))


def host() -> Host:
    """Return a host of the bundled plugins, a worked one, and the declared formats of the tests."""
    all_formats = Host()
    all_formats.register(pcapng, name="pcapng")
    all_formats.register(_Specimens(), name="specimens")
    return all_formats


def _lines(inputs: Iterable[Input], render: Render) -> Iterator[str]:
    all_formats = host()
    for input in inputs:
        digest = hashlib.sha256(input.data).hexdigest()[:16]
        yield f"input\t{json.dumps([input.name, digest])}\n"
        for part, values in _parts(all_formats, input, render):
            yield f"{part}\t{values}\n"


def _parts(host: Host, input: Input, render: Render) -> Iterator[tuple[str, str]]:
    """Yield the parts of an output by name; of an input that cannot be read, the error's code."""
    try:
        with host.open(input.data, format=input.format, options=input.options) as capture:
            yield "format", json.dumps(capture.format)
            yield "records", _records(capture, render)
            for table_name in capture.tables:
                # It has the wording of findings, which may change.
                if table_name != "diagnostics":
                    yield from _columns(capture.table(table_name), render)
            yield from _findings(capture, render)
    except FxError as error:
        yield "error", json.dumps([error.code, error.offset])


def _records(capture: Capture, render: Render) -> str:
    json_lines = b"".join(capture.records_json()).decode().split("\n")[:-1]
    if render is _digests:
        return render(json_lines)
    # Not parsed and written again: the order of keys and the form of numbers count, too.
    return f"[{','.join(json_lines)}]"


def _columns(table: Table, render: Render) -> Iterator[tuple[str, str]]:
    """Yield the columns of a table with their types; those of an empty table say nothing."""
    if not len(table):
        return
    for name in table.columns:
        column = table[name]
        if isinstance(column, TextColumn):
            yield f"{table.name}.{name} text", render(table.texts(name))
        elif table.schema.column(name).kind == "code":
            # The strings: their numbers are the engine's own business.
            yield f"{table.name}.{name} {column.dtype}", render(table.texts(name))
        else:
            yield f"{table.name}.{name} {column.dtype}", render(_numbers(column))


def _numbers(column: NDArray[Any]) -> list[Any]:
    numbers: list[Any] = column.tolist()
    if column.dtype.kind == "f":
        # JSON has no NaN, and one NaN differs from another by its bits.
        bits = column.astype("<f8").view("<u8")
        for row in np.flatnonzero(~np.isfinite(column)).tolist():
            numbers[row] = hex(bits[row])
    return numbers


def _findings(capture: Capture, render: Render) -> Iterator[tuple[str, str]]:
    """Yield the findings in the order in which they are made, and the count of each code."""
    capture.scan()
    findings = [
        [finding.code, finding.offset, finding.severity.name] for finding in capture.diagnostics
    ]
    if findings:
        yield "findings", render(findings)
        yield "counts", json.dumps(dict(sorted(capture.diagnostics.counts.items())))


def _digests(values: list[Any]) -> str:
    """Return a digest of each slice of values as JSON: whole values would be too large to store."""
    slices = (values[start : start + SLICE] for start in range(0, len(values), SLICE))
    texts = (json.dumps(values_of_slice).encode() for values_of_slice in slices)
    return json.dumps([hashlib.sha256(text).hexdigest()[:8] for text in texts])


# --- Stored and compared --------------------------------------------------------------------------


def store(corpus: str, text: str) -> None:
    """Store the outputs of a corpus."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{corpus}.txt.xz").write_bytes(lzma.compress(text.encode(), preset=9))


def load(corpus: str) -> str:
    """Return the stored outputs of a corpus."""
    return lzma.decompress((FOLDER / f"{corpus}.txt.xz").read_bytes()).decode()


def differences(stored: str, current: str) -> list[str]:
    """Say what differs: input, part, the first row that does, and its values; the first few."""
    stored_inputs, current_inputs = _by_input(stored), _by_input(current)
    gone = stored_inputs.keys() - current_inputs.keys()
    messages = [f"{name}: not among the inputs any more" for name in sorted(gone)]
    for name, current_parts in current_inputs.items():
        stored_parts = stored_inputs.get(name)
        if stored_parts is None:
            messages.append(f"{name}: nothing is stored of it")
        elif stored_parts != current_parts:
            messages += [f"{name}: {line}" for line in _of_parts(stored_parts, current_parts)]
    omitted = len(messages) - SHOWN
    if omitted > 0:
        return [*messages[:SHOWN], f"… and {omitted} more"]
    return messages


def _by_input(text: str) -> dict[str, Parts]:
    """Return the parts of each input by its name; its digest is the part ``bytes``."""
    inputs: dict[str, Parts] = {}
    for line in text.split("\n")[:-1]:
        part, _, values = line.partition("\t")
        if part == "input":
            name, digest = json.loads(values)
            inputs[name] = parts = {"bytes": digest}
        else:
            parts[part] = values
    return inputs


def _of_parts(stored: Parts, current: Parts) -> Iterator[str]:
    if stored["bytes"] != current["bytes"]:
        # Then everything differs, and none of it is the engine's doing.
        yield "the input has other bytes than when its output was stored"
        return
    for part in dict.fromkeys([*stored, *current]):
        if part not in stored:
            yield f"{part}: new"
        elif part not in current:
            yield f"{part}: gone"
        elif stored[part] != current[part]:
            yield f"{part}: {_of_values(json.loads(stored[part]), json.loads(current[part]))}"


def _of_values(stored: Any, current: Any) -> str:
    """Say how the values of a part differ."""
    if stored == current:
        return "the same values, written in another way"
    if not (isinstance(stored, list) and isinstance(current, list)):
        return f"stored {_short(stored)}, now {_short(current)}"
    pairs = zip(stored, current, strict=False)
    rows = [row for row, (old_value, new_value) in enumerate(pairs) if old_value != new_value]
    if not rows:
        return f"stored {len(stored)} rows, now {len(current)}, which agree as far as they go"
    message = (
        f"row {rows[0]}: stored {_short(stored[rows[0]])}, now {_short(current[rows[0]])}; "
        f"{len(rows)} of {len(stored)} rows differ"
    )
    if _sorted(stored) == _sorted(current):
        return f"{message} (the same in another order)"
    if len(stored) != len(current):
        return f"{message}, and there are {len(current)} now"
    return message


def _sorted(values: list[Any]) -> list[str]:
    return sorted(json.dumps(value) for value in values)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > WIDEST:
        return f"{text[:WIDEST]}…"
    return text

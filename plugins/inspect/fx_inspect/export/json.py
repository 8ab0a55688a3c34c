"""The exporter `json`: an array of one object a capture, as `ffx inspect show` prints it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import orjson

from fx_inspect.export.base import TreeExport, names_of
from fx_inspect.export.presentation import LongTexts, Shown, Texts, json_truth, numbers, string_list
from fx_inspect.read.histograms import Bound, Histogram
from fx_inspect.read.walk import Slots, Values, walk
from fxframework.io.sink import Sink
from fxframework.kit.export import quoted
from fxframework.kit.json_fields import special_double
from fxframework.kit.memo import strings_of
from fxframework.model.capture import Capture
from fxframework.model.table import Table

SAME_NAME: Final = "properties and children of a name that another of the same node has"
SPECIAL: Final = "doubles that JSON does not have (NaN, infinity)"
LARGEST: Final = "1.7976931348623157e308"


class JsonExport(TreeExport):
    """Writes an array with an object for each capture, as `ffx inspect show` prints it."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._begun = False

    def write(self, capture: Capture) -> None:
        """Write one capture."""
        self._sink.write(b",\n" if self._begun else b"[")
        self._begun = True
        super().write(capture)

    def close(self) -> Mapping[str, int]:
        """End the array. Return the counts of what was left out, by name."""
        self._sink.write(b"]\n" if self._begun else b"[]\n")
        return super().close()

    def _pieces(self, capture: Capture) -> Iterator[str]:
        """Yield the metadata and the tree."""
        moniker, name = names_of(capture, self._options)
        metadata: dict[str, Any] = {
            "name": name,
            "component_url": self._options["component_url"],
            "timestamp": self._options["timestamp"],
        }
        if self._options["escrowed"]:
            metadata["escrowed"] = True
        metadata_json = orjson.dumps(metadata).decode()
        yield f'{{"data_source":"Inspect","metadata":{metadata_json},'
        yield f'"moniker":{quoted(moniker)},"payload":'
        long_texts = self._long_texts(capture)
        names = Texts(strings_of(capture.strings), lambda data: quoted(long_texts.of(data)))
        depth = -1
        has_members = False
        open_names: list[set[int]] = []
        for node in walk(capture, self._render(long_texts)):
            closing = "}" * (depth - node.depth + 1)
            del open_names[node.depth :]
            if open_names:
                self._count_same(open_names[-1], node.name)
            own_names: set[int] = set()
            open_names.append(own_names)
            if depth < 0:
                opening = "{"
            elif closing or has_members:  # a sibling or a property comes before
                opening = ","
            else:
                opening = ""
            yield f"{closing}{opening}{names[node.name]}:{{"
            has_members = False
            for key, value in node.properties:
                self._count_same(own_names, key)
                comma = "," if has_members else ""
                has_members = True
                if isinstance(value, str):
                    yield f"{comma}{names[key]}:{value}"
                else:
                    yield f"{comma}{names[key]}:"
                    yield from string_list(value, names)
            depth = node.depth
            for link in node.links:
                self._count_link(link)
        yield "}" * (depth + 2) if depth >= 0 else "null"
        yield ',"version":1}'

    def _count_same(self, inside: set[int], name: int) -> None:
        """Count a member of an object with the name of an earlier member."""
        self._dropped[SAME_NAME] += name in inside
        inside.add(name)

    def _render(self, long: LongTexts) -> Callable[[Table, Slots], list[tuple[int, Shown]]]:
        values: Values[Shown] = Values(
            integer=str,
            double=self._double,
            truth=json_truth,
            string=lambda data: quoted(long.of(data)),
            data=lambda data: f'"b64:{base64.b64encode(data).decode()}"',
            array=lambda _type, slots, _format: numbers(slots, self._number),
            histogram=self._histogram,
            strings=lambda codes: codes,
        )
        return values.named

    def _double(self, value: float) -> str:
        special = special_double(value)
        if not special:
            return repr(value)
        self._dropped[SPECIAL] += 1
        if special == "-Infinity":
            return f"-{LARGEST}"
        return LARGEST

    def _number(self, value: Bound) -> str:
        if isinstance(value, float):
            return self._double(value)
        return str(value)

    def _histogram(self, histogram: Histogram) -> str:
        members = []
        for name, value in histogram.condensed().items():
            if isinstance(value, list):
                members.append(f'"{name}":{numbers(value, self._number)}')
            else:
                members.append(f'"{name}":{self._number(value)}')
        return f"{{{','.join(members)}}}"

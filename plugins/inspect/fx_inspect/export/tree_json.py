"""The exporter `tree-json`: the exact tree of one capture, with the types of its properties."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from fx_inspect.export.base import TreeExport
from fx_inspect.export.presentation import LongTexts, Shown, Texts, json_truth, numbers, string_list
from fx_inspect.format import ARRAY_FORMATS
from fx_inspect.read.histograms import Bound, Histogram
from fx_inspect.read.tables import BYTES, DOUBLE, STRING, STRING_ARRAY, TYPES
from fx_inspect.read.walk import ARRAYS, EXPANDED, Slots, Values, walk
from fxframework.io.sink import Sink
from fxframework.kit.export import NOT_UTF8, empty_refusal, quoted
from fxframework.kit.json_fields import CANONICAL_NAN, bits_of, special_double
from fxframework.kit.memo import strings_of
from fxframework.model.capture import Capture
from fxframework.model.table import Table

PAYLOADS: Final = "bits of NaN"


class TreeJsonExport(TreeExport):
    """Writes the tree without metadata, with the types of properties."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._lossless = options["lossless"]
        self._long: LongTexts

    def write(self, capture: Capture) -> None:
        """Write one capture. Raises WriteRefusedError for a second one."""
        self._only_one_capture("tree-json holds one tree")
        super().write(capture)

    def _pieces(self, capture: Capture) -> Iterator[str]:
        """Yield each node's name and properties, its children, and then its links."""
        pooled_strings = strings_of(capture.strings)
        names = Texts(pooled_strings, partial(self._member, "name"))
        contents = Texts(pooled_strings, partial(self._member, "content"))
        self._long = self._long_texts(capture)
        strings = Texts(pooled_strings, lambda data: quoted(self._long.of(data)))
        closing: list[Sequence[str]] = []
        """What ends the object of each node that is still open: its links and brackets."""
        for node in walk(capture, self._render(names)):
            comma = ""
            while len(closing) > node.depth:
                yield from closing.pop()
                comma = ","
            yield f'{comma}{{{names[node.name]},"properties":['
            comma = ""
            for start, value in node.properties:
                if isinstance(value, str):
                    yield f"{comma}{start}{value}}}"
                else:
                    yield f"{comma}{start}"
                    yield from string_list(value, strings)
                    yield "}"
                comma = ","
            yield '],"children":['
            links_left = [link for link in node.links if link.state != EXPANDED]
            if not links_left:
                closing.append(("]}",))
                continue
            ending = ['],"links":']
            for comma, link in zip(["[", *"," * (len(links_left) - 1)], links_left, strict=True):
                ending += [
                    comma, "{", names[link.name], ",", contents[link.content],
                    f',"disposition":"{link.disposition}"}}',
                ]  # fmt: skip
            closing.append([*ending, "]}"])
        if not closing:
            raise empty_refusal(capture, "the capture has no nodes")
        while closing:
            yield from closing.pop()
        yield "\n"

    def _render(
        self, names: Mapping[int, str]
    ) -> Callable[[Table, Slots], list[tuple[str, Shown]]]:
        """Return the function that renders properties: the start of the object, and the value."""
        values: Values[Shown] = Values(
            integer=str,
            double=self._double,
            truth=json_truth,
            string=partial(self._member, "string"),
            data=lambda data: f'"{data.hex()}"',
            array=self._array,
            histogram=self._histogram,
            strings=lambda codes: codes,
        )
        keys = {number: f',"{name}":' for number, name in TYPES.items()}
        # The values of these types contain their own keys.
        keys |= dict.fromkeys((STRING, *ARRAYS), ",")
        keys |= {BYTES: ',"bytes_hex":', STRING_ARRAY: ',"string_list":', DOUBLE: ","}

        def render(batch: Table, slots: Slots) -> list[tuple[str, Shown]]:
            rows = batch.tuples("name", "type")
            return [
                (f"{{{names[code]}{keys[number]}", value)
                for (code, number), value in zip(rows, values.of(batch, slots), strict=True)
            ]

        return render

    def _member(self, key: str, data: bytes) -> str:
        """Return a string as a member, with its bytes too if they are not UTF-8."""
        in_part = self._long.in_part(data)
        if in_part is not None:
            return f'"{key}":{quoted(in_part)}'
        try:
            return f'"{key}":{quoted(data.decode())}'
        except UnicodeDecodeError:
            member_json = f'"{key}":{quoted(data.decode("utf-8", "replace"))}'
            if self._lossless:
                return f'{member_json},"{key}_bytes_hex":"{data.hex()}"'
            self._dropped[NOT_UTF8] += 1
            return member_json

    def _double(self, value: float) -> str:
        special = special_double(value)
        if not special:
            return f'"double":{value!r}'
        member_json = f'"double":"{special}"'
        bits = bits_of(value)
        if special != "NaN" or bits == CANONICAL_NAN:
            return member_json
        if self._lossless:
            return f'{member_json},"double_bits":"0x{bits:016x}"'
        self._dropped[PAYLOADS] += 1
        return member_json

    def _number(self, value: Bound) -> str:
        if not isinstance(value, float):
            return str(value)
        special = special_double(value)
        if special == "NaN" and bits_of(value) != CANONICAL_NAN:
            self._dropped[PAYLOADS] += 1
        return f'"{special}"' if special else repr(value)

    def _array(self, type: str, slots: Sequence[Bound], format: int) -> str:
        display = ""
        if format and format in ARRAY_FORMATS:
            display = f',"display":"{ARRAY_FORMATS[format]}"'
        return f'"{type}_array":{numbers(slots, self._number)}{display}'

    def _histogram(self, histogram: Histogram) -> str:
        members = [
            f'"{name}":{self._number(value)}' for name, value in histogram.parameters().items()
        ]
        members += [
            f'"size":{histogram.size}',
            f'"counts":{numbers(histogram.counts, self._number)}',
        ]
        return f'"{histogram.type}_{histogram.kind}_histogram":{{{",".join(members)}}}'

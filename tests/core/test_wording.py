"""Messages count as people do: no "1 bytes", no "the last 1 are"."""

from __future__ import annotations

import re
from collections.abc import Iterator

import fxframework as fxf
from fxframework.errors import FxError

from ..cases import cases
from ..samples import one_of_each, samples

PLURAL = re.compile(r"(?<![\d,.:#/+-])1 (?!has|is|was|less)[a-z]{2,}s\b|\b1 are\b")


def messages(data: bytes, format: str | None) -> Iterator[str]:
    """What is said of some bytes."""
    try:
        with fxf.open(data, format=format) as capture:
            capture.scan()
            yield from (finding.message for finding in capture.diagnostics)
    except FxError as error:
        yield str(error)


@cases("name", one_of_each())
def test_findings_about_one_thing_are_singular(name: str) -> None:
    format, data = samples()[name]
    for cut in (*range(1, 18), *range(len(data) - 24, len(data) + 1)):
        for message in messages(data[: max(cut, 0)], format):
            assert not PLURAL.search(message), message


def test_a_plural_is_found() -> None:
    assert PLURAL.search("it has 1 bytes")
    assert PLURAL.search("the last 1 are not a whole word")
    assert not PLURAL.search("version 1 has none, 21 bytes, 1 byte")

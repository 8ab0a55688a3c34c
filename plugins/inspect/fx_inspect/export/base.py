"""The common base of the exporters of the tree, which write pieces of text as they are made."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final

from fx_inspect.export.presentation import LongTexts
from fx_inspect.read.walk import EXPANDED, Link
from fxframework.kit.export import Export
from fxframework.model.capture import Capture

PIECES: Final = 1 << 12
CHARACTERS: Final = 1 << 20
"""Most pieces of text, and characters, buffered before they are written."""
FACTOR: Final = 16
SPARE: Final = 16 << 20
"""Budget of repeated long strings, in bytes: for each byte of the file, and at least."""
LINKS: Final = "links that are not expanded"


class TreeExport(Export):
    """Writes the pieces of text of each capture."""

    def write(self, capture: Capture) -> None:
        """Write one capture."""
        gathered: list[str] = []
        size = 0
        for piece in self._pieces(capture):
            gathered.append(piece)
            size += len(piece)
            if size >= CHARACTERS or len(gathered) >= PIECES:
                self._sink.write("".join(gathered).encode())
                gathered.clear()
                size = 0
        self._sink.write("".join(gathered).encode())

    @abc.abstractmethod
    def _pieces(self, capture: Capture) -> Iterator[str]: ...

    def _long_texts(self, capture: Capture, share: int = 1) -> LongTexts:
        """Return what shortens the long strings of a capture; ``share`` divides its budget."""
        repeat = bool(self._options.get("repeat"))
        spare = max(SPARE, FACTOR * capture.source.size)
        return LongTexts(self._dropped, repeat=repeat, budget=spare // share)

    def _count_link(self, link: Link) -> None:
        self._dropped[LINKS] += link.state != EXPANDED


def names_of(capture: Capture, options: Mapping[str, Any]) -> tuple[str, str]:
    """Return the moniker of a capture and the name of its tree, by default from the file's name."""
    name = PurePath(capture.source.suffix_name).name
    return options["moniker"] or name.partition(".")[0] or name, options["name"] or name

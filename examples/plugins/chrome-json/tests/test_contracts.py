"""Traces of JSON keep the contracts of readers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from fxframework.testing import ReaderContract, Sample

from .samples import ARRAY, OBJECT, ODD, OPEN_ARRAY, SYSTEM


def _samples() -> Iterator[Sample]:
    yield Sample("array.json", ARRAY)
    yield Sample("open.json", OPEN_ARRAY)
    yield Sample("object.json", OBJECT)
    yield Sample("system.json", SYSTEM)
    yield Sample("odd.json", ODD, sound=False)
    yield Sample("cut.json", OBJECT[:-30], sound=False)


class TestReader(ReaderContract):
    plugin = "fx_chrome_json.plugin"
    format = "chrome-json"
    examples = 10
    golden = Path(__file__).parent / "golden"

    def samples(self) -> Iterable[Sample]:
        return _samples()

    def foreign(self) -> Mapping[str, bytes]:
        return {
            **super().foreign(),
            "speedscope": b'{"$schema":"https://www.speedscope.app/file-format-schema.json"}',
            "logs": b'[{"message":"ph","level":"info","ts":1}]',
            "records": b'{"format":"trace","version":1}\n{"record":"event","ph":"X"}\n',
        }

"""The inputs whose outputs are stored: what the repository has, what is in an archive, and damage.

``inputs.tar.xz`` holds inputs that were generated once, a folder for each format: samples of the
readers, files drawn from the strategies of the tests and damaged, every kind of record in every
version and byte order, awkward and hostile shapes, compressed files, and records files. They are
stored as bytes, so that nothing here depends on what writes a format. To add one, unpack the
archive (``tar xf``), put a file into the folder of its format, and pack it again
(``tar cJf inputs.tar.xz *``).
"""

from __future__ import annotations

import functools
import hashlib
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Input", "corpora", "large"]

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
CONFORMANCE = ROOT / "tests" / "conformance"
FAMILIES = ("inspect", "log", "pcapng", "trace", "xray")
NO_CAPTURES = frozenset({".json", ".md", ".txt", ".csv", ".dot", ".cpp", ".h", ".elf"})
VECTORS = {
    "inspect": {"blocks": "inspect", "files": "inspect", "legacy_v0": "inspect"},
    "log": {"records": "log", "streams": "log", "legacy": "log-legacy"},
    "trace": {"records": "trace"},
}
"""Files of vectors of a family, and the format of the bytes in them."""
OTHERS = {
    "inspect": ("examples/scenarios/inspect.golden/*.inspect",),
    "log": ("examples/scenarios/logs.golden/*.fxlog",),
    "pcapng": ("examples/plugins/pcapng/tests/files/*.pcapng",),
    "trace": ("examples/scenarios/*.golden/*.fxt", "examples/scenarios/*.golden/*.tbuf"),
    "xray": ("examples/scenarios/xray.golden/*.xray", "examples/xray/*.xray"),
}
"""Captures of a family outside of ``tests/conformance``."""
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "log/suffixed": {"suffix": True},
    "log/suffixed-damaged": {"suffix": True},
}
"""Options for the inputs of a folder of the archive."""
VARIANTS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "log/real/vectors": (
        {"printf": True},
        {"severity_era": "2022"},
        {"fidl_limits": True},
        {"utc_offset_ns": 1_700_000_000_000_000_000},
    ),
    "log/real/legacy-vectors": ({"severity_era": "2022"},),
    "trace/real/vectors": ({"max_record": 24}, {"max_findings": 2}, {"match": "name"}),
    "xray/real/fdr5-all-clang16.xray": (
        {"instr_map": CONFORMANCE / "xray" / "instr_map" / "app-16.elf"},
        {"instr_map": CONFORMANCE / "xray" / "instr_map" / "app-16.yaml", "demangle": False},
        {"cycle_frequency": 1_000_000_000},
    ),
}
"""Inputs that are read with other options, too."""
MOST_DAMAGED = 12_000
"""Bytes of the largest captures of the repository that are damaged."""
DAMAGES = {"inspect": 5, "log": 5, "pcapng": 5, "trace": 5, "xray": 1}
"""How often each of these is damaged: there are many of XRay, and few of the others."""
REPEATED = {
    "trace/sample/60000": (0, 30),
    "log/sample/60000": (0, 60),
    "log-legacy-stream/sample/60000": (16, 60),
    "xray/sample/60000": (32, 20),
    "xray-basic/sample/20000": (32, 120),
    "inspect/large/2100000": (0, 1),
}
"""What makes inputs of several blocks: bytes of a head, and how often the rest is repeated."""


class Input(NamedTuple):
    """An input, and how to read it."""

    name: str
    data: bytes
    format: str | None
    """The reader's name; None to detect it, from the name, too."""
    options: Mapping[str, Any]

    def variant(self, more: str, **changed: Any) -> Input:
        """The same with another name and what else is changed."""
        return self._replace(name=f"{self.name} {more}", **changed)


@functools.cache
def corpora() -> dict[str, list[Input]]:
    """All inputs but the large ones, by the name of their corpus: ``real-trace``, ``made-log``."""
    inputs = {f"real-{family}": list(_real(family)) for family in FAMILIES}
    for input in _archive().values():
        if input.name in REPEATED and "/large/" in input.name:
            continue
        inputs.setdefault(f"made-{input.format}", []).extend(_with_damage(input))
    return inputs


@functools.cache
def large() -> dict[str, Input]:
    """Inputs with more than 65,536 records or rows, by the name of their corpus."""
    inputs = {}
    for name, (head, times) in REPEATED.items():
        input = _archive()[name]
        data = input.data[:head] + input.data[head:] * times
        inputs[f"large-{input.format}"] = input.variant(f"x {times}", data=data)
    return inputs


@functools.cache
def _archive() -> dict[str, Input]:
    """The inputs of the archive, by name."""
    inputs = {}
    with tarfile.open(FOLDER / "inputs.tar.xz") as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None:
                format, group, _ = member.name.split("/", 2)
                options = OPTIONS.get(f"{format}/{group}", {})
                inputs[member.name] = Input(member.name, file.read(), format, options)
    return inputs


def _real(family: str) -> Iterator[Input]:
    """Captures and vectors of a family, whole, damaged, and read with other options."""
    for input in (*_files(family), *_vectors(family)):
        yield input
        if len(input.data) <= MOST_DAMAGED and "/vector/" not in input.name:
            yield from _damaged(input, DAMAGES[family])
        for options in VARIANTS.get(input.name, ()):
            text = ",".join(
                f"{key}={getattr(value, 'name', value)}" for key, value in options.items()
            )
            yield input.variant(text, options=options)


def _files(family: str) -> Iterator[Input]:
    """The captures of a family that are files of the repository."""
    paths = sorted((CONFORMANCE / family).rglob("*"))
    paths += [path for pattern in OTHERS[family] for path in sorted(ROOT.glob(pattern))]
    for path in paths:
        if path.is_file() and path.suffix not in NO_CAPTURES and path.parent.name != "instr_map":
            folder = CONFORMANCE / family
            name = path.relative_to(folder if path.is_relative_to(folder) else ROOT).as_posix()
            yield Input(f"{family}/real/{name}", path.read_bytes(), _stated(path), {})


def _stated(path: Path) -> str | None:
    """The format of a file that detection cannot know."""
    if path.name == "convert.yaml":
        return "llvm-yaml"
    return "xray" if path.parent.name == "damaged" else None


def _vectors(family: str) -> Iterator[Input]:
    """The vectors of a family, one by one and joined."""
    joined: dict[str, bytes] = {}
    for file, format in VECTORS.get(family, {}).items():
        vectors = json.loads((CONFORMANCE / family / f"{file}.json").read_text("utf-8"))
        for vector in vectors:
            if "hex" not in vector:
                continue
            data = bytes.fromhex(vector["hex"])
            data = data.ljust(vector.get("zero_pad_to") or 0, b"\0")
            yield Input(f"{family}/vector/{file}/{vector['name']}", data, format, {})
            if file in {"records", "legacy"}:
                joined[format] = joined.get(format, b"") + data
    for format, data in joined.items():
        which = format.removeprefix(family).removeprefix("-")
        yield Input(f"{family}/real/{which}{'-' * bool(which)}vectors", data, format, {})


def _with_damage(input: Input) -> Iterable[Input]:
    """An input of the archive; of samples and of those with every kind of record, damage too."""
    _, group, rest = input.name.split("/", 2)
    yield input
    if group == "sample":
        yield from _damaged(input, 2 if rest == "60000" else 10)
    elif group in {"every-kind", "of", "converted"}:
        yield from _damaged(input, 4)


def _damaged(input: Input, count: int) -> Iterator[Input]:
    """An input that is damaged in several ways, always the same for its name."""
    for number in range(count if input.data else 0):
        dice = _Dice(f"{input.name} {number}")
        data = bytearray(input.data)
        way = ("flip", "cut", "remove", "insert", "overwrite")[number % 5]
        place = dice.below(len(data))
        if way == "flip":
            for _ in range(1 + dice.below(3)):
                data[dice.below(len(data))] ^= 1 << dice.below(8)
        elif way == "cut":
            del data[place:]
        elif way == "remove":
            del data[place : place + 1 + dice.below(40)]
        elif way == "insert":
            data[place:place] = dice.bytes(1 + dice.below(40))
        else:
            length = min(8 * (1 + dice.below(4)), len(data) - place)
            data[place : place + length] = bytes(length) if dice.below(2) else b"\xff" * length
        yield input.variant(f"{way} {number}", data=bytes(data))


class _Dice:
    """Numbers that follow from a text, in every version of Python."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._drawn = 0

    def bytes(self, count: int) -> bytes:
        """Up to 64 bytes."""
        self._drawn += 1
        return hashlib.sha512(f"{self._seed} {self._drawn}".encode()).digest()[:count]

    def below(self, bound: int) -> int:
        """A number from 0 up to, but not including, ``bound``."""
        return int.from_bytes(self.bytes(8), "little") % bound

"""Inputs: the captures that files, folders, patterns, lists and addresses name."""

from __future__ import annotations

import glob
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs

from fxframework.errors import FxError, UnreadableError, UsageError
from fxframework.io.remote import file_system, is_address

__all__ = ["Item", "expand"]

DIGITS = 16
"""Hexadecimal digits of a capture's id: 64 bits of the SHA-256 of its name."""
WEB = ("http", "https")
VERSIONS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")
"""What file systems call the mark of a file's state, the best first."""


Facts = Mapping[str, Any] | None
"""What a file system says of a file; None where it is not asked yet."""


@attrs.frozen(kw_only=True)
class Item:
    """A capture to convert: its name, its host, and its state when the batch began."""

    file: str
    host: str = ""
    size: int = -1
    """Bytes as stored; -1 where that is not known."""
    version: str = ""
    """A mark that changes with the file: its time of modification, or an entity tag."""

    @property
    def capture(self) -> str:
        """The capture's id, which only its name decides."""
        return hashlib.sha256(self.file.encode(errors="surrogateescape")).hexdigest()[:DIGITS]


def expand(words: Iterable[str], *, host: str = "", out: str = "") -> list[Item]:
    """The captures that some words name, each once, in the order of their names.

    A word is a file, a folder (its files, and those below it), a pattern with ``*``, ``?`` or
    ``[]`` (``**`` goes down), ``@LIST`` (a file of words, one a line, each with a tab and its host
    if it has one), or an address. ``host`` names the host of all others; ``{folder}`` in it is the
    name of the folder of each. Files of the dataset ``out`` and hidden files are left out.

    A file that is not there is an Item too: its conversion fails, not the batch. Raises UsageError
    for a pattern that nothing matches, UnreadableError for a list that cannot be read.
    """
    found: dict[str, tuple[str, Facts]] = {}
    for word in words:
        listed = _lines(word[1:]) if word.startswith("@") else ((word, ""),)
        for name, own in listed:
            for file, facts in _files(name, out):
                found.setdefault(file, (own, facts))
    return [
        _item(file, own or _host(file, host), facts) for file, (own, facts) in sorted(found.items())
    ]


def _lines(name: str) -> Iterator[tuple[str, str]]:
    """Names and hosts of a list; empty lines and those with ``#`` first are skipped."""
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text("utf-8", "surrogateescape")
    except OSError as error:
        raise UnreadableError(
            f"the list cannot be read: {error.strerror or error}", path=name
        ) from error
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            file, _, host = line.partition("\t")
            yield file.strip(), host.strip()


def _files(name: str, out: str) -> Iterator[tuple[str, Facts]]:
    """The files that one name stands for, with what a listing says of each."""
    if is_address(name):
        yield from _addresses(name)
    else:
        yield from ((file, None) for file in _paths(name, out))


def _paths(name: str, out: str) -> Iterator[str]:
    """The files that a path, a folder or a pattern stands for."""
    path = Path(name)
    if path.is_dir():
        yield from _below(path, out)
    elif path.exists() or not glob.has_magic(name):
        yield path.as_posix()
    else:
        dataset = _dataset(out)
        matches = [
            each
            for match in glob.iglob(name, recursive=True)  # noqa: PTH207 (the name may be absolute)
            for each in (_below(Path(match), out) if Path(match).is_dir() else [match])
            if dataset is None or not Path(each).resolve().is_relative_to(dataset)
        ]
        if not matches:
            raise UsageError(
                f"no file matches {name!r}", remedy="quote the pattern, and check its folder"
            )
        yield from (Path(each).as_posix() for each in matches)


def _dataset(out: str) -> Path | None:
    """The folder of the dataset, if it is on this machine."""
    return Path(out).resolve() if out and not is_address(out) else None


def _below(folder: Path, out: str) -> Iterator[str]:
    """The files of a folder and below it, without hidden ones and those of a dataset."""
    dataset = _dataset(out)
    for at, folders, names in os.walk(folder):
        here = Path(at)
        folders[:] = sorted(
            each
            for each in folders
            if not each.startswith(".") and (here / each).resolve() != dataset
        )
        yield from ((here / name).as_posix() for name in names if not name.startswith("."))


def _addresses(name: str) -> Iterator[tuple[str, Facts]]:
    """The addresses that one stands for: itself, its files, or what matches its pattern.

    A listing has sizes and versions: so no file is asked for by itself.
    """
    fs, path = file_system(name)
    scheme = name.partition("://")[0]
    try:
        if scheme not in WEB and glob.has_magic(path):
            found = fs.glob(path, detail=True)
        elif scheme not in WEB and fs.isdir(path):
            found = fs.find(path, detail=True)
        else:
            yield name, None
            return
    except Exception as error:
        raise UnreadableError(f"the files there cannot be listed: {error}", path=name) from error
    files = {each: info for each, info in found.items() if info.get("type") == "file"}
    if not files:
        raise UsageError(f"no file matches {name!r}", remedy="check the address")
    for each, info in files.items():
        yield f"{scheme}://{each.removeprefix(f'{scheme}://')}", info


def _host(file: str, template: str) -> str:
    """The host of a file: as the template says, or that of its address."""
    if not template:
        return urlsplit(file).hostname or "" if is_address(file) else ""
    folder = file.rstrip("/").rpartition("/")[0].rpartition("/")[2]
    return template.replace("{folder}", folder)


def _item(file: str, host: str, facts: Facts) -> Item:
    """A capture with its size and version, where they can be had."""
    try:
        if is_address(file):
            fs, path = file_system(file)
            info = fs.info(path) if facts is None else facts
            version = next((str(info[key]) for key in VERSIONS if info.get(key)), "")
            return Item(file=file, host=host, size=int(info.get("size") or -1), version=version)
        status = Path(file).stat()
        return Item(file=file, host=host, size=status.st_size, version=str(status.st_mtime_ns))
    except FxError:
        raise
    except Exception:  # noqa: BLE001 (its conversion says what is wrong)
        return Item(file=file, host=host)

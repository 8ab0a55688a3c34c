"""Inputs: expands files, folders, patterns, lists and addresses to captures."""

from __future__ import annotations

import fnmatch
import functools
import glob
import hashlib
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import attrs

from fxframework.errors import FxError, UnreadableError, UsageError
from fxframework.io.remote import file_system, is_address
from fxframework.io.special import kind_of_mode
from fxframework.kit.shown import amount, printable

__all__ = ["Item", "expand", "skipped_text"]

DIGITS = 16
"""Hexadecimal digits of a capture's id: 64 bits of the SHA-256 of its name."""
WEB = ("http", "https")
VERSIONS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")
"""Keys of a file's version in the metadata of file systems, the best first."""


Facts = Mapping[str, Any] | None
"""Metadata of a file; None if not fetched yet."""
SHOWN_KINDS = 5
"""Kinds of skipped files that are named."""


class _Found(NamedTuple):
    """What is known of a file that a word led to."""

    host: str
    """Its host, if a list gives it."""
    facts: Facts
    named: bool


@attrs.frozen(kw_only=True)
class Item:
    """A capture to convert: its name, its host, and its state when the batch began."""

    file: str
    host: str = ""
    size: int = -1
    """Stored bytes; -1 if unknown."""
    version: str = ""
    """A value that changes with the file: its modification time or an entity tag."""
    named: bool = True
    """Whether a word is its name; False if it was found in a folder or by a pattern."""
    special: str = ""
    """``pipe``, ``socket`` or ``device``; empty for a regular file."""

    @property
    def skipped_at_once(self) -> bool:
        """Whether it is a pipe, socket or device that nobody named, and must not be opened."""
        return bool(self.special) and not self.named

    @property
    def kind(self) -> str:
        """What it is in the list of skipped files: a special file, a suffix or a name."""
        name = self.file.rpartition("/")[2]
        return self.special or os.path.splitext(name)[1] or name  # noqa: PTH122 (an address, too)

    @property
    def capture(self) -> str:
        """The capture's id, derived from its name."""
        return hashlib.sha256(self.file.encode(errors="surrogateescape")).hexdigest()[:DIGITS]


def expand(words: Iterable[str], *, host: str = "", out: str = "") -> list[Item]:
    """Expand words to distinct captures, sorted by name.

    A word is a file, a folder (with all files below it), a pattern with ``*``, ``?`` or ``[]``
    (``**`` matches nested folders, but no symbolic links to folders), ``@LIST`` (a file with one
    word per line, optionally followed by a tab and its host), or an address. ``host`` is the host
    of the others, in which ``{folder}`` stands for the folder of the file. Hidden files and files
    of the dataset ``out`` are ignored. A file that several names lead to is taken once, by its
    own name if that is among them.

    A missing file is returned, too, so that its conversion fails and not the batch. So are pipes,
    sockets and devices in a folder, which callers skip, as they skip files that are not captures,
    unless a word names the file. Raises
    UsageError for a pattern without matches, UnreadableError for a list that cannot be read.
    """
    found: dict[str, _Found] = {}
    for word in words:
        listed = _lines(word[1:]) if word.startswith("@") else ((word, ""),)
        for name, own in listed:
            for file, facts, named in _files(name, out):
                known = found.setdefault(file, _Found(own, facts, named))
                if named and not known.named:
                    found[file] = known._replace(named=True)
    return [
        _item(file, fact.host or _host(file, host), fact.facts, named=fact.named)
        for file, fact in _distinct(sorted(found.items()))
    ]


def skipped_text(items: Sequence[Item]) -> str:
    """Say how many files were skipped, of what kinds, and where."""
    kinds = Counter(item.kind for item in items).most_common()
    names = [f"{count:,} {printable(kind)}" for kind, count in kinds[:SHOWN_KINDS]]
    if len(kinds) > SHOWN_KINDS:
        names.append("…")
    text = f"skipped {amount(len(items), 'file')} that are not captures: {', '.join(names)}"
    folders = {Path(item.file).parts[0] for item in items}
    if len(folders) == 1 and Path(items[0].file).name not in folders and "/" not in folders:
        text += f", in {printable(*folders)}"
    return text


def _distinct(found: list[tuple[str, _Found]]) -> Iterator[tuple[str, _Found]]:
    """Yield one of the names that lead to the same file through symbolic links."""
    folder = functools.cache(os.path.realpath)

    def real(file: str) -> str:
        above, name = os.path.split(os.path.abspath(file))  # noqa: PTH100 (keeps links)
        place = os.path.join(folder(above), name)  # noqa: PTH118
        return os.path.realpath(place) if os.path.islink(place) else place  # noqa: PTH114

    files = {name: name if is_address(name) else real(name) for name, _ in found}
    known = {file for name, file in files.items() if os.path.abspath(name) == file}  # noqa: PTH100
    seen: set[str] = set()
    for name, facts in found:
        file = files[name]
        if file not in seen and (file not in known or os.path.abspath(name) == file):  # noqa: PTH100
            seen.add(file)
            yield name, facts


def _lines(name: str) -> Iterator[tuple[str, str]]:
    """Yield names and hosts of a list; skip empty lines and those that begin with ``#``."""
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


def _files(name: str, out: str) -> Iterator[tuple[str, Facts, bool]]:
    """Yield the files for a name, with metadata if a listing has it, and whether it is the name."""
    if is_address(name):
        for file, facts in _addresses(name):
            yield file, facts, file == name
        return
    path = Path(name)
    if path.is_dir():
        for file in _below(path, out):
            yield file, None, False
    elif path.exists() or not glob.has_magic(name):
        yield path.as_posix(), None, True
    else:
        for file in _matching(name, out):
            yield file, None, False


def _matching(name: str, out: str) -> Iterator[str]:
    """Yield the files for a pattern. Raises UsageError if there are none."""
    path = Path(name)
    dataset = _dataset(out)
    matches = [
        file
        for match in _matches(Path(path.anchor), path.relative_to(path.anchor).parts)
        for file in (_below(match, out) if match.is_dir() else [match.as_posix()])
        if dataset is None or not _real(file).is_relative_to(dataset)
    ]
    if not matches:
        raise UsageError(
            f"no file matches {name!r}", remedy="quote the pattern, and check its folder"
        )
    yield from matches


def _matches(folder: Path, parts: Sequence[str]) -> Iterator[Path]:
    """Yield what the parts of a pattern match below a folder, in order, perhaps repeatedly."""
    if not parts:
        yield folder
        return
    first, *rest = parts
    if first == "**" and "**" in rest[:1]:  # once says the same
        yield from _matches(folder, rest)
    elif first == "**":
        for at, folders, _ in os.walk(folder) if rest else ():
            folders[:] = sorted(each for each in folders if not each.startswith("."))
            yield from _matches(Path(at), rest)
        if not rest:
            yield folder
    elif not glob.has_magic(first):
        if os.path.lexists(folder / first):
            yield from _matches(folder / first, rest)
    else:
        try:
            names = sorted(os.listdir(folder))  # noqa: PTH208 (names alone)
        except OSError:
            return
        for name in fnmatch.filter(names, first):
            hidden = name.startswith(".") and not first.startswith(".")
            if not hidden and (not rest or (folder / name).is_dir()):
                yield from _matches(folder / name, rest)


def _dataset(out: str) -> Path | None:
    """Return the folder of the dataset; None for an address."""
    return _real(out) if out and not is_address(out) else None


def _real(path: str | Path) -> Path:
    """Return a path without links. Links in a circle stay: Path.resolve raises for them."""
    return Path(os.path.realpath(path))


def _below(folder: Path, out: str) -> Iterator[str]:
    """Yield all files below a folder, except hidden files and those of the dataset."""
    dataset = _dataset(out)
    for at, folders, names in os.walk(folder):
        here = Path(at)
        folders[:] = sorted(
            each for each in folders if not each.startswith(".") and _real(here / each) != dataset
        )
        yield from ((here / name).as_posix() for name in names if not name.startswith("."))


def _addresses(name: str) -> Iterator[tuple[str, Facts]]:
    """Yield the addresses for an address: itself, its files, or the matches of its pattern.

    A listing includes sizes and versions, so files need no separate requests.
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
    """Return the host of a file: from the template, or from its address."""
    if not template:
        return urlsplit(file).hostname or "" if is_address(file) else ""
    folder = file.rstrip("/").rpartition("/")[0].rpartition("/")[2]
    return template.replace("{folder}", folder)


def _item(file: str, host: str, facts: Facts, *, named: bool) -> Item:
    """Return a capture with its size and version, if available."""
    try:
        if is_address(file):
            fs, path = file_system(file)
            info = fs.info(path) if facts is None else facts
            version = next((str(info[key]) for key in VERSIONS if info.get(key)), "")
            size = int(info.get("size") or -1)
            return Item(file=file, host=host, size=size, version=version, named=named)
        status = Path(file).stat()
        special = kind_of_mode(status.st_mode)
        return Item(
            file=file, host=host, size=status.st_size, version=str(status.st_mtime_ns),
            named=named, special=special,
        )  # fmt: skip
    except FxError:
        raise
    except Exception:  # noqa: BLE001 (its conversion reports the error)
        return Item(file=file, host=host, named=named)

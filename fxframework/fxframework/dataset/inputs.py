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

DIGITS = 16
"""Hexadecimal digits of a capture's id: 64 bits of the SHA-256 of its name."""
WEB = ("http", "https")
VERSION_KEYS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")
"""Keys of a file's version in the metadata of file systems, the best first."""
SHOWN_KINDS = 5
"""Kinds of skipped files that are named."""
Metadata = Mapping[str, Any] | None
"""Metadata of a file; None if not fetched yet."""


class _File(NamedTuple):
    """A file that a word led to."""

    name: str
    metadata: Metadata = None
    """What a listing says of it."""
    named: bool = False
    """Whether the word is its name."""
    host: str = ""
    """Its host, if a list gives it."""


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
    files: dict[str, _File] = {}
    for word in words:
        names_and_hosts = _lines(word[1:]) if word.startswith("@") else [(word, "")]
        for name, listed_host in names_and_hosts:
            for file in _files(name, out):
                earlier = files.get(file.name)
                if earlier is None:
                    files[file.name] = file._replace(host=listed_host)
                elif file.named:
                    files[file.name] = earlier._replace(named=True)
    by_name = sorted(files.values(), key=lambda file: file.name)
    return [_item(file, host) for file in _distinct(by_name)]


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


def _distinct(files: Sequence[_File]) -> Iterator[_File]:
    """Yield one of the names that lead to the same file through symbolic links.

    That is the file's own name if it is among them, else the first.
    """
    real_folder = functools.cache(os.path.realpath)

    def real_path(name: str) -> str:
        folder, file_name = os.path.split(os.path.abspath(name))  # noqa: PTH100 (keeps links)
        path = os.path.join(real_folder(folder), file_name)  # noqa: PTH118
        return os.path.realpath(path) if os.path.islink(path) else path  # noqa: PTH114

    def is_own_name(name: str, path: str) -> bool:
        return os.path.abspath(name) == path  # noqa: PTH100 (keeps links)

    paths = [file.name if is_address(file.name) else real_path(file.name) for file in files]
    files_and_paths = list(zip(files, paths, strict=True))
    with_own_name = {path for file, path in files_and_paths if is_own_name(file.name, path)}
    yielded: set[str] = set()
    for file, path in files_and_paths:
        is_preferred = is_own_name(file.name, path) or path not in with_own_name
        if is_preferred and path not in yielded:
            yielded.add(path)
            yield file


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


def _files(name: str, out: str) -> Iterator[_File]:
    """Yield the files that a name leads to; the host is for the caller to fill in."""
    if is_address(name):
        for address, metadata in _addresses(name):
            yield _File(address, metadata, named=address == name)
        return
    path = Path(name)
    if path.is_dir():
        for file in _below(path, out):
            yield _File(file)
    elif path.exists() or not glob.has_magic(name):
        yield _File(path.as_posix(), named=True)
    else:
        for file in _matching(name, out):
            yield _File(file)


def _matching(name: str, out: str) -> Iterator[str]:
    """Yield the files for a pattern. Raises UsageError if there are none."""
    path = Path(name)
    dataset = _dataset(out)
    pattern = path.relative_to(path.anchor).parts
    files: list[str] = []
    for match in _matches(Path(path.anchor), pattern):
        files += _below(match, out) if match.is_dir() else [match.as_posix()]
    if dataset is not None:
        files = [file for file in files if not _real(file).is_relative_to(dataset)]
    if not files:
        raise UsageError(
            f"no file matches {name!r}", remedy="quote the pattern, and check its folder"
        )
    yield from files


def _matches(folder: Path, pattern_parts: Sequence[str]) -> Iterator[Path]:
    """Yield what the parts of a pattern match below a folder, in order, perhaps repeatedly."""
    if not pattern_parts:
        yield folder
        return
    first_part, *later_parts = pattern_parts
    if first_part == "**" and "**" in later_parts[:1]:  # once says the same
        yield from _matches(folder, later_parts)
    elif first_part == "**" and not later_parts:
        yield folder  # all files below a folder are taken anyway
    elif first_part == "**":
        for subfolder, subfolder_names, _ in os.walk(folder):
            # In place: os.walk goes on with these, in this order.
            subfolder_names[:] = sorted(
                name for name in subfolder_names if not name.startswith(".")
            )
            yield from _matches(Path(subfolder), later_parts)
    elif not glob.has_magic(first_part):
        if os.path.lexists(folder / first_part):
            yield from _matches(folder / first_part, later_parts)
    else:
        try:
            names = sorted(os.listdir(folder))  # noqa: PTH208 (names alone)
        except OSError:
            return
        for name in fnmatch.filter(names, first_part):
            is_hidden = name.startswith(".") and not first_part.startswith(".")
            if not is_hidden and (not later_parts or (folder / name).is_dir()):
                yield from _matches(folder / name, later_parts)


def _dataset(out: str) -> Path | None:
    """Return the folder of the dataset; None for an address."""
    return _real(out) if out and not is_address(out) else None


def _real(path: str | Path) -> Path:
    """Return a path without links. Links in a circle stay: Path.resolve raises for them."""
    return Path(os.path.realpath(path))


def _below(folder: Path, out: str) -> Iterator[str]:
    """Yield all files below a folder, except hidden files and those of the dataset."""
    dataset = _dataset(out)
    for subfolder_name, subfolder_names, file_names in os.walk(folder):
        subfolder = Path(subfolder_name)
        # In place: os.walk goes on with these, in this order.
        subfolder_names[:] = sorted(
            name
            for name in subfolder_names
            if not name.startswith(".") and _real(subfolder / name) != dataset
        )
        for name in file_names:
            if not name.startswith("."):
                yield (subfolder / name).as_posix()


def _addresses(name: str) -> Iterator[tuple[str, Metadata]]:
    """Yield the addresses for an address: itself, its files, or the matches of its pattern.

    A listing includes sizes and versions, so files need no separate requests.
    """
    fs, path = file_system(name)
    scheme = name.partition("://")[0]
    try:
        if scheme not in WEB and glob.has_magic(path):
            listing = fs.glob(path, detail=True)
        elif scheme not in WEB and fs.isdir(path):
            listing = fs.find(path, detail=True)
        else:
            yield name, None
            return
    except Exception as error:
        raise UnreadableError(f"the files there cannot be listed: {error}", path=name) from error
    files = [path for path, metadata in listing.items() if metadata.get("type") == "file"]
    if not files:
        raise UsageError(f"no file matches {name!r}", remedy="check the address")
    for path in files:
        # Some file systems list addresses, others paths without the scheme.
        yield f"{scheme}://{path.removeprefix(f'{scheme}://')}", listing[path]


def _host_of(file: str, template: str) -> str:
    """Return the host of a file: from the template, or from its address."""
    if template:
        path_of_folder, _, _ = file.rstrip("/").rpartition("/")
        _, _, folder = path_of_folder.rpartition("/")
        return template.replace("{folder}", folder)
    if is_address(file):
        return urlsplit(file).hostname or ""
    return ""


def _item(file: _File, host_template: str) -> Item:
    """Return a capture with its size and version, if available."""
    host = file.host or _host_of(file.name, host_template)
    item = Item(file=file.name, host=host, named=file.named)
    try:
        if is_address(file.name):
            metadata = file.metadata
            if metadata is None:
                fs, path = file_system(file.name)
                metadata = fs.info(path)
            versions = (metadata.get(key) for key in VERSION_KEYS)
            version = next((str(value) for value in versions if value), "")
            size = int(metadata.get("size") or -1)
            return attrs.evolve(item, size=size, version=version)
        status = Path(file.name).stat()
        return attrs.evolve(
            item,
            size=status.st_size,
            version=str(status.st_mtime_ns),
            special=kind_of_mode(status.st_mode),
        )
    except FxError:
        raise
    except Exception:  # noqa: BLE001 (its conversion reports the error)
        return item

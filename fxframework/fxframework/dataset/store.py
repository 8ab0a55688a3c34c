"""Store: the files of a dataset, in a local folder or at an address.

DATASET/table=slices/ID.parquet   the rows of one table of one capture
DATASET/_manifest.jsonl           an Entry for each capture, once the batch is complete
DATASET/_done/ID.json             an Entry for each capture that is finished, until then
DATASET/_dataset.json             the settings of the conversion
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable
from concurrent import futures
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fxframework.dataset.manifest import Entry
from fxframework.errors import MissingExtraError, UnreadableError, WriteRefusedError
from fxframework.io.remote import file_system, is_address, open_sink
from fxframework.io.sink import Sink

if TYPE_CHECKING:
    from pyarrow import fs

MANIFEST = "_manifest.jsonl"
DONE = "_done"
DATASET = "_dataset.json"
TABLE = "table="
PARQUET = ".parquet"
READERS = 16
"""Small files at an address to fetch or send in parallel."""


def table_folder(table: str) -> str:
    """Return the folder of a table, in the style of Hive."""
    return TABLE + table


class Store:
    """A dataset's files. Names are relative to its folder, with slashes."""

    def __init__(self, root: str) -> None:
        try:
            from pyarrow import fs
        except ImportError:
            raise MissingExtraError("pyarrow", "arrow", purpose="a dataset") from None
        self.root = root.rstrip("/") or root
        self.remote = is_address(root)
        if self.remote:
            remote_files, path = file_system(self.root, WriteRefusedError)
            self.files: Any = fs.PyFileSystem(fs.FSSpecHandler(remote_files))
            self.path = path.rstrip("/")
        else:
            self.files = fs.LocalFileSystem()
            self.path = Path(self.root).absolute().as_posix()

    @staticmethod
    @functools.lru_cache(maxsize=8)
    def at(root: str) -> Store:
        """Return the cached store of an address or folder."""
        return Store(root)

    def place(self, name: str) -> str:
        """Return the path of a file within the file system ``files``."""
        return f"{self.path}/{name}"

    def sink(self, name: str) -> Sink:
        """Open an output, which atomically replaces an existing file."""
        if self.remote:
            return open_sink(f"{self.root}/{name}", force=True)
        target = Path(self.place(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        return Sink.open(target, force=True)

    def commit(self, sinks: Iterable[Sink]) -> None:
        """Commit outputs; those at an address are sent in parallel. Raises FxError."""
        if not self.remote:
            for sink in sinks:
                sink.commit()
            return
        with futures.ThreadPoolExecutor(READERS) as pool:
            list(pool.map(lambda sink: sink.commit(), sinks))

    def write(self, name: str, data: bytes) -> None:
        """Write a small file."""
        with self.sink(name) as sink:
            sink.write(data)

    def read(self, name: str) -> bytes | None:
        """Read a small file; return None if it does not exist."""
        try:
            with self.files.open_input_stream(self.place(name)) as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def _listed(self, folder: str) -> list[fs.FileInfo]:
        from pyarrow import fs

        selector = fs.FileSelector(
            self.place(folder).rstrip("/"), allow_not_found=True, recursive=False
        )
        return list(self.files.get_file_info(selector))

    def names(self, folder: str = "") -> list[str]:
        """Return the sorted names of files and folders in a folder, which need not exist."""
        return sorted(info.base_name for info in self._listed(folder))

    def tables(self) -> list[str]:
        """Return the tables that have a folder."""
        return [name.removeprefix(TABLE) for name in self.names() if name.startswith(TABLE)]

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        with contextlib.suppress(FileNotFoundError):
            self.files.delete_file(self.place(name))

    # --- Captures ---

    def parquet(self, table: str, capture: str) -> str:
        """Return the name of the file with the rows of a table of a capture."""
        return f"{table_folder(table)}/{capture}{PARQUET}"

    def finish(self, entry: Entry) -> None:
        """Record that a capture is finished, which makes its files part of the dataset."""
        self.write(f"{DONE}/{entry.capture}.json", entry.to_json())

    def entries(self) -> dict[str, Entry]:
        """Return the finished captures by id, from the manifest and from an unfinished batch.

        Raises UnreadableError for an invalid line.
        """
        manifest = self.read(MANIFEST) or b""
        names_and_lines = [(MANIFEST, line) for line in manifest.splitlines()]
        done_names = [
            name for name in self.names(DONE) if name.endswith(".json") and not name.startswith(".")
        ]
        with futures.ThreadPoolExecutor(READERS if self.remote else 1) as pool:
            done_lines = pool.map(self._done, done_names)
            names_and_lines += zip(done_names, done_lines, strict=True)
        entries: dict[str, Entry] = {}
        for name, line in names_and_lines:
            try:
                entry = Entry.from_json(line)
            except ValueError as error:
                raise UnreadableError(
                    f"{name} has an invalid line: {error}",
                    path=self.root,
                    remedy="remove the line; its capture is converted again with --resume",
                ) from None
            entries[entry.capture] = entry
        return entries

    def _done(self, name: str) -> bytes:
        return self.read(f"{DONE}/{name}") or b""

    def conclude(self, entries: Iterable[Entry]) -> None:
        """Write the manifest, and remove files that belong to no capture in it."""
        entries_by_file = sorted(entries, key=lambda entry: entry.file)
        self.write(MANIFEST, b"".join(entry.to_json() for entry in entries_by_file))
        for table in self.tables():
            current_files = {
                f"{entry.capture}{PARQUET}" for entry in entries_by_file if entry.rows.get(table)
            }
            for name in self.names(table_folder(table)):
                if name not in current_files:
                    self.remove(f"{table_folder(table)}/{name}")
        self._remove_folder(DONE)

    def _remove_folder(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.files.delete_dir(self.place(name))

    def clear(self) -> None:
        """Remove the dataset's files, and nothing else."""
        for name in (MANIFEST, DATASET):
            self.remove(name)
        for folder in (DONE, *(table_folder(table) for table in self.tables())):
            self._remove_folder(folder)

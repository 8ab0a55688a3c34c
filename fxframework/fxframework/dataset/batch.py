"""Batch: converts many captures into a dataset, resumes, and reports."""

from __future__ import annotations

import functools
import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import orjson

from fxframework.dataset.engines import Items, engine_of
from fxframework.dataset.inputs import Item, expand
from fxframework.dataset.manifest import FAILED, LOSSES, OK, SKIPPED, Entry
from fxframework.dataset.part import Recipe, convert_items
from fxframework.dataset.store import DATASET, Store
from fxframework.errors import UsageError, WriteRefusedError, readable_name
from fxframework.registry import LIMIT_OPTIONS, parse_options

TASK_ITEMS = 16
"""Largest number of captures of a task."""
TASK_BYTES = 64 << 20
"""Largest number of bytes of a task; a larger capture is a separate task."""


@attrs.frozen(kw_only=True)
class BatchReport:
    """The result of a batch."""

    out: str
    entries: Sequence[Entry]
    """All captures of the dataset, in the order of their names."""
    done: int
    """Number of captures that this run converted; the others were finished before."""
    nbytes: int
    """Stored bytes of the converted captures."""
    seconds: float
    skipped: Sequence[Item] = ()
    """Files of folders and patterns that are not captures."""

    @property
    def outcomes(self) -> Mapping[str, int]:
        """Number of captures by outcome."""
        counts = Counter(entry.outcome for entry in self.entries)
        return {outcome: counts[outcome] for outcome in (OK, LOSSES, FAILED)}

    @property
    def rows(self) -> Mapping[str, int]:
        """Number of rows by table."""
        rows: Counter[str] = Counter()
        for entry in self.entries:
            rows.update(entry.rows)
        return dict(rows)


Progress = Callable[[int, int, int, int, Entry | None], None]
"""Called with captures done and total, bytes done and total, and the finished capture."""


def batch(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    engine: str = "pool",
    resume: bool = False,
    force: bool = False,
    host: str = "",
    format: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> BatchReport:
    """Convert captures of any formats into one dataset, a folder or an address.

    ``inputs`` are files, folders, patterns, ``@LIST`` files and addresses. Every table is a folder
    ``table=NAME`` of Parquet files, one per capture, whose first columns are ``capture`` (an id),
    ``capture_file`` and ``capture_host``. ``_manifest.jsonl`` has the outcome of each capture. A
    capture that cannot be read is reported there and does not stop the others. Files of folders and
    patterns that are not captures are skipped.

    ``jobs`` is the number of processes (default: one per processor), ``engine`` is ``pool``,
    ``dask`` or ``dask=ADDRESS``. ``resume`` continues a batch: finished captures that have not
    changed are kept. ``force`` replaces a dataset. ``host`` is the host of the captures, in which
    ``{folder}`` stands for their folder. ``options`` are those of readers, and the limits.

    Raises UsageError for inputs, engines and options that do not exist, and for ``resume`` with
    other options than before; WriteRefusedError if ``out`` is not empty; MissingExtraError.
    """
    start_time = time.perf_counter()
    words = [inputs] if isinstance(inputs, str | os.PathLike) else inputs
    root = os.fspath(out)
    absolute_root = _absolute(root)
    if absolute_root != readable_name(absolute_root):
        raise WriteRefusedError(
            "a dataset cannot have this name, which is not valid UTF-8",
            path=root,
            remedy="name another folder with --out",
        )
    recipe = Recipe(out=absolute_root, folder=_absolute(""), format=format, options=options)
    _check_options(recipe)
    names = [os.fspath(word) for word in words]
    items = expand(names, host=host, out=root)
    store = Store(recipe.out)
    entries = _prepare(store, recipe, resume=resume, force=force)
    pending = [
        item
        for item in items
        if not (item.capture in entries and entries[item.capture].holds(item))
    ]
    pending_by_id = {item.capture: item for item in pending}
    skipped = []
    done = 0
    bytes_done = 0
    bytes_in_all = sum(max(item.size, 0) for item in pending)
    if progress is not None:
        progress(0, len(pending), 0, bytes_in_all, None)
    worker_limit = (os.cpu_count() or 1) if jobs is None else max(1, jobs)
    with engine_of(engine, min(worker_limit, max(1, len(pending)))) as workers:
        results = workers.run(functools.partial(convert_items, recipe), _tasks(pending))
        for entry in itertools.chain.from_iterable(results):
            if entry.outcome == SKIPPED:
                skipped.append(pending_by_id[entry.capture])
                entries.pop(entry.capture, None)  # it may have been a capture before
            else:
                entries[entry.capture] = entry
            done += 1
            bytes_done += max(entry.size, 0)
            if progress is not None:
                progress(done, len(pending), bytes_done, bytes_in_all, entry)
    store.conclude(entries.values())
    bytes_skipped = sum(max(item.size, 0) for item in skipped)
    return BatchReport(
        out=root,
        entries=sorted(entries.values(), key=lambda entry: entry.file),
        done=len(pending) - len(skipped),
        nbytes=bytes_in_all - bytes_skipped,
        seconds=time.perf_counter() - start_time,
        skipped=skipped,
    )


def _absolute(root: str) -> str:
    """Return an absolute path, valid in every process; addresses are unchanged."""
    return root if "://" in root else os.path.abspath(root)  # noqa: PTH100 (do not resolve links)


def _check_options(recipe: Recipe) -> None:
    """Raise UsageError for a format or an option that no reader has."""
    from fxframework.conversion import check_options
    from fxframework.host import default_host
    from fxframework.targets import owned_options

    host = default_host()
    readers = list(host.readers.values())
    if recipe.format is not None:
        readers = [host.reader(recipe.format)]
    check_options(host, recipe.options, [], *owned_options(readers))
    # Each option is that of a reader at least; its value must be valid for all that have it.
    for reader in readers:
        options = (*reader.options, *LIMIT_OPTIONS)
        names = {option.name for option in options}
        values = {name: value for name, value in recipe.options.items() if name in names}
        parse_options(values, options, whose=f"the reader of {reader.format}")


def _prepare(store: Store, recipe: Recipe, *, resume: bool, force: bool) -> dict[str, Entry]:
    """Prepare the folder for this recipe; return the finished captures in it."""
    options = {name: str(value) for name, value in sorted(recipe.options.items())}
    settings = {
        "fxframework": "dataset",
        "version": 1,
        "format": recipe.format,
        "options": options,
    }
    settings_text = orjson.dumps(settings, option=orjson.OPT_APPEND_NEWLINE)
    if not store.remote and Path(store.path).is_file():
        raise WriteRefusedError(
            "not a folder", path=store.root, remedy="name another folder with --out"
        )
    earlier_text = store.read(DATASET)
    if earlier_text is None:
        if store.names():
            raise WriteRefusedError(
                "the folder is neither empty nor a dataset",
                path=store.root,
                remedy="name another folder with --out",
            )
    elif resume:
        if earlier_text != settings_text:
            earlier = earlier_text.decode(errors="replace").strip()
            raise UsageError(
                f"the dataset was made with other options: {earlier}",
                remedy="give the same -f and -o, or replace the dataset with --force",
            )
    elif force:
        store.clear()
    else:
        raise WriteRefusedError(
            "it is already a dataset",
            path=store.root,
            remedy="continue it: --resume on the command line, resume=True in Python; or replace "
            "it: --force, force=True",
        )
    store.write(DATASET, settings_text)
    return store.entries()


def _tasks(items: Iterable[Item]) -> Iterator[Items]:
    """Yield captures in groups, small ones together."""
    group: list[Item] = []
    nbytes = 0
    for item in items:
        if group and (len(group) == TASK_ITEMS or nbytes + item.size > TASK_BYTES):
            yield tuple(group)
            group = []
            nbytes = 0
        group.append(item)
        nbytes += max(item.size, 0)
    if group:
        yield tuple(group)

"""Batch: captures into a dataset: what is to do, what was done before, and the report."""

from __future__ import annotations

import functools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from fxframework.dataset.engines import Engine, Items, engine_of
from fxframework.dataset.inputs import Item, expand
from fxframework.dataset.manifest import FAILED, LOSSES, OK, Entry
from fxframework.dataset.part import Recipe, convert_items
from fxframework.dataset.store import DATASET, Store
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.registry import LIMIT_OPTIONS, parse_options

__all__ = ["BatchReport", "batch"]

TASK_ITEMS, TASK_BYTES = 16, 64 << 20
"""Captures, and bytes of them, that a task has at most; a larger capture is a task of its own."""


@attrs.frozen(kw_only=True)
class BatchReport:
    """What a batch did."""

    out: str
    entries: Sequence[Entry]
    """All captures of the dataset, in the order of their names."""
    done: int
    """Captures that this run converted; the others were finished before."""
    nbytes: int
    """Their bytes as stored."""
    seconds: float

    @property
    def outcomes(self) -> Mapping[str, int]:
        """Captures of each outcome."""
        counts = Counter(entry.outcome for entry in self.entries)
        return {outcome: counts[outcome] for outcome in (OK, LOSSES, FAILED)}

    @property
    def rows(self) -> Mapping[str, int]:
        """Rows of each table."""
        rows: Counter[str] = Counter()
        for entry in self.entries:
            rows.update(entry.rows)
        return dict(rows)


Progress = Callable[[int, int, int, int, Entry | None], None]
"""Called with captures done and in all, bytes done and in all, and the one that was finished."""


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
    ``table=NAME`` of Parquet files, one a capture; each has the columns ``capture`` (an id),
    ``capture_file`` and ``capture_host`` in front. ``_manifest.jsonl`` says what became of each
    capture. One that cannot be read is reported there, and does not stop the others.

    ``jobs`` are the processes (one for each processor), ``engine`` is ``pool``, ``dask`` or
    ``dask=ADDRESS``. ``resume`` goes on where a batch ended: finished captures that have not
    changed since are kept. ``force`` replaces a dataset. ``host`` names the host of the captures,
    ``{folder}`` in it their folder. ``options`` are those of readers, and the limits.

    Raises UsageError for inputs, engines and options that do not exist, and where ``resume`` finds
    a dataset of other options; WriteRefusedError where ``out`` is not empty; MissingExtraError.
    """
    begin = time.perf_counter()
    words = [inputs] if isinstance(inputs, str | os.PathLike) else inputs
    root = os.fspath(out)
    recipe = Recipe(out=_absolute(root), folder=_absolute(""), format=format, options=options)
    _check(recipe)
    items = expand([os.fspath(word) for word in words], host=host, out=root)
    store = Store(recipe.out)
    finished = _prepare(store, recipe, resume=resume, force=force)
    left = [
        item
        for item in items
        if not (item.capture in finished and finished[item.capture].holds(item))
    ]
    entries = dict(finished)
    done = nbytes = 0
    most = sum(max(item.size, 0) for item in left)
    if progress is not None:
        progress(0, len(left), 0, most, None)
    count = (os.cpu_count() or 1) if jobs is None else max(1, jobs)
    with engine_of(engine, min(count, max(1, len(left)))) as workers:
        for entry in _run(workers, recipe, left):
            entries[entry.capture] = entry
            done += 1
            nbytes += max(entry.size, 0)
            if progress is not None:
                progress(done, len(left), nbytes, most, entry)
    store.conclude(entries.values())
    return BatchReport(
        out=root,
        entries=sorted(entries.values(), key=lambda entry: entry.file),
        done=len(left),
        nbytes=most,
        seconds=time.perf_counter() - begin,
    )


def _absolute(root: str) -> str:
    """A path that means the same in every process."""
    return root if "://" in root else os.path.abspath(root)  # noqa: PTH100 (no links are followed)


def _check(recipe: Recipe) -> None:
    """Refuse a format or an option that no reader has, before anything is read."""
    from fxframework.conversion import check_options
    from fxframework.host import default_host

    host = default_host()
    readers = list(host.readers.values())
    if recipe.format is not None:
        readers = [host.reader(recipe.format)]
    check_options(
        host, recipe.options, [], *((f"reader {each.format}", each.options) for each in readers)
    )
    for reader in readers:
        known = (*reader.options, *LIMIT_OPTIONS)
        names = {option.name for option in known}
        mine = {name: value for name, value in recipe.options.items() if name in names}
        parse_options(mine, known, whose=f"the reader of {reader.format}")


def _prepare(store: Store, recipe: Recipe, *, resume: bool, force: bool) -> dict[str, Entry]:
    """Make the folder fit for this recipe; gives what is finished in it."""
    import orjson

    options = {name: str(value) for name, value in sorted(recipe.options.items())}
    about = {"fxframework": "dataset", "version": 1, "format": recipe.format, "options": options}
    text = orjson.dumps(about, option=orjson.OPT_APPEND_NEWLINE)
    known = store.read(DATASET)
    if known is None and store.names():
        raise WriteRefusedError(
            "the folder is not empty, and is not a dataset",
            path=store.root,
            remedy="name another folder with --out",
        )
    if known is not None and not (resume or force):
        raise WriteRefusedError(
            "it is a dataset already",
            path=store.root,
            remedy="continue it: --resume on the command line, resume=True in Python; or replace "
            "it: --force, force=True",
        )
    if known is not None and not resume:
        store.clear()
    elif known is not None and known != text:
        raise UsageError(
            f"the dataset was begun with other options: {known.decode(errors='replace').strip()}",
            remedy="give the same -f and -o, or replace the dataset with --force",
        )
    store.write(DATASET, text)
    return store.entries()


def _tasks(items: Iterable[Item]) -> Iterator[Items]:
    """Captures in groups, small ones together."""
    group: list[Item] = []
    nbytes = 0
    for item in items:
        if group and (len(group) == TASK_ITEMS or nbytes + item.size > TASK_BYTES):
            yield tuple(group)
            group, nbytes = [], 0
        group.append(item)
        nbytes += max(item.size, 0)
    if group:
        yield tuple(group)


def _run(engine: Engine, recipe: Recipe, items: Sequence[Item]) -> Iterator[Entry]:
    for entries in engine.run(functools.partial(convert_items, recipe), _tasks(items)):
        yield from entries

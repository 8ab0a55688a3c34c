"""Engines run conversions: in this process, in a pool of processes, or on a Dask cluster."""

from __future__ import annotations

import abc
import contextlib
import multiprocessing
import os
import shutil
import sys
import tempfile
import threading
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection, util
from pathlib import Path
from typing import Any, Self

from fxframework import rules
from fxframework.dataset.inputs import Item
from fxframework.dataset.manifest import FAILED, Entry, Fault
from fxframework.errors import FxError, MissingExtraError, UsageError
from fxframework.io.pending import new_scratch_folder, remove_leftovers
from fxframework.io.temporary import temporary_errors

Items = tuple[Item, ...]
Work = Callable[[Items], list[Entry]]
AHEAD = 3
"""Tasks submitted ahead per worker, so that workers are never idle."""
SCRATCH = "mp"
"""The purpose in the name of the folder for sockets; short, because their paths must be."""
LONGEST_FOLDER = 50
"""Characters of the folder of temporary files above which a socket's path might be too long."""
LOST = Fault(
    code=rules.LIMIT_REACHED.code,
    message="the process that read it ended abnormally, twice: it was killed, ran out of "
    "memory, or crashed",
    remedy="convert it alone with `fxf convert`; -o max_memory=BYTES bounds its memory",
)


class Engine(abc.ABC):
    """Runs tasks on workers. Use as a context manager."""

    workers = 1
    lost: tuple[type[BaseException], ...] = ()
    """Exceptions that the result of a task raises if its worker ended."""

    @abc.abstractmethod
    def submit(self, work: Work, items: Items) -> Any:
        """Start a task; return its future."""

    @abc.abstractmethod
    def wait(self, running: Iterable[Any]) -> set[Any]:
        """Wait until at least one future is done; return those that are."""

    def restart(self) -> None:  # noqa: B027 (optional)
        """Restart the engine after a worker was lost."""

    @abc.abstractmethod
    def close(self, *, cancel: bool) -> None:
        """Release the workers; ``cancel`` drops tasks that have not started."""

    def run(self, work: Work, tasks: Iterable[Items]) -> Iterator[list[Entry]]:
        """Yield the results of tasks as they complete.

        If a worker is lost, the captures of its tasks are retried one at a time; a capture that
        loses its worker again has failed.
        """
        queue = deque(tasks)
        running: dict[Any, Items] = {}
        while queue or running:
            while queue and len(running) < AHEAD * self.workers:
                items = queue.popleft()
                running[self.submit(work, items)] = items
            suspects: list[Item] = []
            for future in self.wait(running):
                items = running.pop(future)
                try:
                    yield future.result()
                except self.lost:
                    suspects += items
            if suspects:
                # A lost worker ends the whole pool: the other tasks are done, or lost with it.
                for future, items in running.items():
                    try:
                        yield future.result()
                    except self.lost:
                        suspects += items
                running.clear()
                self.restart()
                for item in suspects:
                    yield self._retry(work, item)

    def _retry(self, work: Work, item: Item) -> list[Entry]:
        """Convert a capture alone, so that a worker that is lost again is lost by this one."""
        future = self.submit(work, (item,))
        try:
            result: list[Entry] = future.result()
        except self.lost:
            self.restart()
            return [Entry.of(item, FAILED, error=LOST)]
        return result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close(cancel=kind is not None)


class SerialEngine(Engine):
    """Converts captures one after the other in this process."""

    def submit(self, work: Work, items: Items) -> Any:
        """Run the task."""
        future: futures.Future[list[Entry]] = futures.Future()
        future.set_result(work(items))
        return future

    def wait(self, running: Iterable[Any]) -> set[Any]:
        """Return all futures, which are done."""
        return set(running)

    def close(self, *, cancel: bool) -> None:
        """Do nothing: there are no workers."""


class PoolEngine(Engine):
    """Converts captures in processes of this machine."""

    lost = (BrokenProcessPool,)

    def __init__(self, workers: int) -> None:
        self.workers = workers
        _use_scratch_folder()
        self._pool = self._new_pool()

    def _new_pool(self) -> futures.ProcessPoolExecutor:
        # Do not fork this process: pyarrow has threads.
        methods = multiprocessing.get_all_start_methods()
        method = "forkserver" if "forkserver" in methods else "spawn"
        return futures.ProcessPoolExecutor(
            self.workers, multiprocessing.get_context(method), initializer=_end_with_parent
        )

    def submit(self, work: Work, items: Items) -> Any:
        """Submit the task to the pool, which may start a process for it."""
        with _without_main():
            return self._pool.submit(work, items)

    def wait(self, running: Iterable[Any]) -> set[Any]:
        """Wait for the first future."""
        return futures.wait(running, return_when=futures.FIRST_COMPLETED).done

    def restart(self) -> None:
        """Replace the pool."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = self._new_pool()

    def close(self, *, cancel: bool) -> None:
        """End the processes."""
        self._pool.shutdown(wait=True, cancel_futures=cancel)


def _use_scratch_folder() -> None:
    """Have multiprocessing keep its sockets in a folder that the next batch removes after a kill.

    Its own folder, ``pymp-…``, says not of which process it is, and would stay.
    """
    config: dict[str, Any] = getattr(multiprocessing.process.current_process(), "_config", {})
    if "tempdir" in config or len(tempfile.gettempdir()) > LONGEST_FOLDER:
        return
    folder = str(new_scratch_folder(SCRATCH))
    config["tempdir"] = folder
    # As multiprocessing does: last of all at exit.
    util.Finalize(None, shutil.rmtree, args=(folder, True), exitpriority=-100)


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Hide the caller's main module from new processes, which would run it again.

    This allows a script to call ``fxframework.batch`` at its top level.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _end_with_parent() -> None:
    """End this worker process when the parent process ends; otherwise it would wait forever."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class DaskEngine(Engine):
    """Converts captures on a Dask cluster: at an address, or a local one."""

    def __init__(self, address: str, workers: int) -> None:
        try:
            import distributed
        except ImportError:
            raise MissingExtraError(
                "dask[distributed]", "batch", purpose="the Dask engine"
            ) from None
        self.lost = (distributed.KilledWorker, futures.CancelledError)
        self._stack = contextlib.ExitStack()
        try:
            cluster: Any = address
            if not address:
                with _without_main():
                    cluster = self._stack.enter_context(
                        distributed.LocalCluster(
                            n_workers=workers, threads_per_worker=1, dashboard_address=None
                        )
                    )
            self._client = self._stack.enter_context(distributed.Client(cluster))
        except (OSError, ValueError) as error:
            self._stack.close()
            raise FxError(
                f"the Dask scheduler cannot be reached: {error}",
                path=address or None,
                remedy="check the address: --engine dask=tcp://HOST:8786",
            ) from error
        self._wait = distributed.wait
        self.workers = max(1, sum(self._client.nthreads().values()))

    def submit(self, work: Work, items: Items) -> Any:
        """Submit the task to the scheduler."""
        return self._client.submit(work, items, pure=False)

    def wait(self, running: Iterable[Any]) -> set[Any]:
        """Wait for the first future."""
        return set(self._wait(list(running), return_when="FIRST_COMPLETED").done)

    def close(self, *, cancel: bool) -> None:  # noqa: ARG002 (leaving the cluster drops its tasks)
        """Disconnect from the cluster; stop it if it is local."""
        self._stack.close()


def engine_of(text: str, jobs: int) -> Engine:
    """Return the engine for ``pool``, ``dask`` or ``dask=ADDRESS``. Raises UsageError."""
    name, _, address = text.partition("=")
    if name == "dask":
        return DaskEngine(address, jobs)
    if text != "pool":
        raise UsageError(f"no engine is called {text!r}", remedy="pool, dask or dask=ADDRESS")
    with temporary_errors():
        remove_leftovers(Path(tempfile.gettempdir()), f"fxf-{SCRATCH}")
    return PoolEngine(jobs) if jobs > 1 else SerialEngine()

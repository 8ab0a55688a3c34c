"""Containment: keeps plugins from printing into the output and from ending the program.

A plugin that calls ``sys.exit()`` or raises KeyboardInterrupt is reported like one that raises any
other unexpected exception. What a plugin prints goes to standard error.
"""

from __future__ import annotations

import _thread
import contextlib
import inspect
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, Self, TypeVar

from fxframework.errors import one_line

PATIENCE = 10.0
"""Seconds that a sniffer, the import of a plugin or a registration hook may take."""
AGAIN = 0.02
"""Seconds until an interrupt that Python dropped is raised again."""
T = TypeVar("T")


class EscapeError(Exception):
    """A plugin tried to end the program; has the traceback of the exception that it raised."""


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """Run code of a plugin with its prints redirected to standard error.

    Raises EscapeError for SystemExit and any other BaseException that is not an Exception, except
    KeyboardInterrupt, which may come from the user.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except (Exception, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 (re-raised as an error)
        raise escape(error) from None


def escape(error: BaseException) -> EscapeError:
    """Return the error for an exception that would end the program, with its traceback."""
    return EscapeError(one_line(error)).with_traceback(error.__traceback__)


def in_time(function: Callable[[], T]) -> T:
    """Return the result of a plugin's function, which runs in a thread of its own.

    Raises what the function raises, EscapeError for what would end the program, and TimeoutError
    after ``PATIENCE`` seconds: the thread is then abandoned.
    """
    # A future would do the same, but its module makes each start import ``logging``.
    outcomes: SimpleQueue[tuple[Any, Exception | None]] = SimpleQueue()

    def run() -> None:
        try:
            outcomes.put((function(), None))
        except Exception as error:  # noqa: BLE001 (raised in the thread that waits)
            outcomes.put((None, error))
        except BaseException as error:  # noqa: BLE001 (it must not end the thread)
            outcomes.put((None, escape(error)))

    threading.Thread(target=run, name="fxf plugin", daemon=True).start()
    try:
        result, error = outcomes.get(timeout=PATIENCE)
    except Empty:
        raise TimeoutError(f"it did not return within {PATIENCE:g} s") from None
    if error is not None:
        raise error
    returned: T = result
    return returned


class Interrupts:
    """A context manager that records whether the user, not a plugin, interrupted the program.

    The KeyboardInterrupt of a signal may get lost in two ways. Python drops it in destructors and
    in callbacks of weak references: this class raises it again. C code may replace it by another
    exception, as numpy does with a TypeError where it promotes the fields of arrays: ``check``
    raises it afterwards.
    """

    def __init__(self) -> None:
        self.arrived = False
        """Whether SIGINT arrived."""
        self.by_user = False
        """Whether SIGINT arrived; True if that cannot be determined."""
        self._previous_handler: Any = None
        """The handler of SIGINT to restore at the end; None if it was not replaced."""
        self._previous_hook = sys.unraisablehook

    def __enter__(self) -> Self:
        is_main_thread = threading.current_thread() is threading.main_thread()
        # Only the main thread can set a handler, and the handler of a caller is left in place.
        if is_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._previous_handler = signal.signal(signal.SIGINT, self._on_signal)
            self._previous_hook = sys.unraisablehook
            sys.unraisablehook = self._raise_again
        else:
            self.by_user = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._previous_handler is not None:
            signal.signal(signal.SIGINT, self._previous_handler)
            sys.unraisablehook = self._previous_hook

    def check(self) -> None:
        """Raise KeyboardInterrupt if SIGINT arrived, so that no other exception hides it."""
        if self.arrived:
            raise KeyboardInterrupt

    def _raise_again(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Interrupt the program again, once it is out of the code that dropped the interrupt."""
        if self.arrived and issubclass(unraisable.exc_type, KeyboardInterrupt):
            threading.Timer(AGAIN, _thread.interrupt_main).start()
        else:
            self._previous_hook(unraisable)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """Note the interrupt and raise it."""
        self.arrived = True
        self.by_user = True
        signal.default_int_handler(number, frame)


class PrintGuard:
    """Stands in for standard output while a command runs: bytes pass, text goes to stderr.

    Commands write only bytes; text is printed by plugins, and would corrupt the output.
    """

    def __init__(self, stdout: Any) -> None:
        self._stdout = stdout
        self.modules: list[str] = []
        """The modules that printed, without duplicates."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stdout, name)

    def write(self, text: str) -> int:
        """Write text to standard error, and note the calling module."""
        module = ""
        own_frame = inspect.currentframe()
        if own_frame is not None and own_frame.f_back is not None:
            module = str(own_frame.f_back.f_globals.get("__name__", ""))
        if module not in self.modules:
            self.modules.append(module)
        return sys.stderr.write(text)

    def writelines(self, lines: Any) -> None:
        """Write lines of text to standard error."""
        for line in lines:
            self.write(line)

    @classmethod
    @contextlib.contextmanager
    def around(cls) -> Iterator[PrintGuard]:
        """Replace standard output by a guard, and yield the guard."""
        stdout = sys.stdout
        guard = cls(stdout)
        sys.stdout = guard
        try:
            yield guard
        finally:
            # A plugin may have replaced it in turn; its object then stays.
            if sys.stdout is guard:
                sys.stdout = stdout

"""crashtest: crash anybody's writer after every single store, and prove each image readable.

    def write(memory):
        log = MyLog(memory)
        log.append(b"hello")

    def check(image):
        MyLog.read(image)          # raises for an invalid image

    report = crashtest(write, check, size=4096)
    assert report.ok, report

The writer runs once, on a memory that records its stores. The images are then made one after the
other: the memory as it was after no store, after the first, after the second, and so on.

A function of a native program is crashed the same way, after every store of the machine code:
``crashtest(program.entry("write", vmo), check)``; the report names the line of the store.
"""

from __future__ import annotations

import inspect
from array import array
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import attrs

from fxframework.io.memory import BytesMemory
from fxframework.io.words import WORD
from fxframework.model.target import Memory

__all__ = ["CrashReport", "CrashTestError", "Failure", "RecordedMemory", "crashtest"]

Check = Callable[..., object]
"""``check(image)``, or ``check(image, notes)``; raises where the image is not as it should be.

One with a parameter ``before`` is given the image before the last store by that name, None for the
first image.
"""
TRAIL = 10
"""Stores that a report shows of a native program."""


class Stores(Protocol):
    """The stores of one run, as they are crashed."""

    @property
    def stores(self) -> int:
        """How many there are."""

    def store(self, number: int) -> tuple[int, int, int]:
        """Offset, value and bytes of store ``number``, from 1."""

    def notes(self, stores: int) -> list[Any]:
        """What was noted before store ``stores + 1``."""

    def images(self) -> Iterator[tuple[bytearray, int]]:
        """The memory after 0, 1, 2 … stores, in place, and what the last one replaced."""

    def places(self, number: int) -> tuple[str, ...]:
        """The last stores up to ``number`` as text, where they can be named."""


class RecordedMemory:
    """A memory that records every store into it (``fxframework.model.target.Memory``)."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.restart()

    def restart(self) -> None:
        """Forget what was stored so far: the present contents are the beginning."""
        self._offsets = array("Q")
        self._values = array("Q")
        self._sizes: list[tuple[int, int]] = []
        self._notes: list[tuple[int, Any]] = []
        self.first = self._memory.read(0, self._memory.size)
        """What it held before the first store."""

    @property
    def size(self) -> int:
        """Bytes in the region."""
        return self._memory.size

    @property
    def stores(self) -> int:
        """How many stores were made."""
        return len(self._values)

    def load_u64(self, offset: int) -> int:
        """The word at byte ``offset``."""
        return self._memory.load_u64(offset)

    def store_u64(self, offset: int, value: int) -> None:
        """Store the word at byte ``offset``."""
        self._memory.store_u64(offset, value)
        self._offsets.append(offset)
        self._values.append(value)

    def read(self, offset: int, n: int) -> bytes:
        """``n`` bytes from ``offset``."""
        return self._memory.read(offset, n)

    def write(self, offset: int, buffer: bytes) -> None:
        """Store whole words in ascending order."""
        self._memory.write(offset, buffer)
        self._offsets.extend(range(offset, offset + len(buffer), WORD))
        self._values.extend(
            int.from_bytes(buffer[at : at + WORD], "little") for at in range(0, len(buffer), WORD)
        )

    def grow(self, size: int) -> None:
        """Make the region at least ``size`` bytes."""
        self._memory.grow(size)
        self._sizes.append((self.stores, self._memory.size))

    def note(self, what: Any) -> None:
        """Say what is true from here on: a check that takes notes is given all up to its image.

        ``memory.note(n)`` behind the commit of record ``n`` lets it see that none is missing.
        """
        self._notes.append((self.stores, what))

    def store(self, number: int) -> tuple[int, int, int]:
        """Offset, value and bytes of store ``number``, from 1."""
        return self._offsets[number - 1], self._values[number - 1], WORD

    def places(self, number: int) -> tuple[str, ...]:  # noqa: ARG002 (native programs have some)
        """Nothing: Python's stores have no place in machine code."""
        return ()

    def notes(self, stores: int) -> list[Any]:
        """The notes that were made before store ``stores + 1``."""
        return [what for made, what in self._notes if made <= stores]

    def images(self) -> Iterator[tuple[bytearray, int]]:
        """The memory after 0, 1, 2 … stores, in place, and the word that the last one replaced."""
        image = bytearray(self.first)
        old = 0
        sizes = iter([*self._sizes, (-1, 0)])
        made, size = next(sizes)
        for number in range(self.stores + 1):
            if number:
                offset, value, _ = self.store(number)
                old = int.from_bytes(image[offset : offset + WORD], "little")
                image[offset : offset + WORD] = value.to_bytes(WORD, "little")
            while made == number:
                image.extend(bytes(max(0, size - len(image))))
                made, size = next(sizes)
            yield image, old


class NativeStores:
    """The stores of a native program into one memory (``fx_emulator.native.StoreTrace``)."""

    def __init__(self, trace: Any) -> None:
        self._trace = trace

    @property
    def stores(self) -> int:
        """How many stores were made."""
        return len(self._trace.raw)

    def store(self, number: int) -> tuple[int, int, int]:
        """Offset, value and bytes of store ``number``, from 1."""
        _thread, _pc, offset, size, value = self._trace.raw[number - 1]
        return offset, value, size

    def notes(self, stores: int) -> list[Any]:  # noqa: ARG002 (Python writers make some)
        """None."""
        return []

    def images(self) -> Iterator[tuple[bytearray, int]]:
        """The memory after 0, 1, 2 … stores, in place, and what the last one replaced."""
        image = bytearray(self._trace.first)
        yield image, 0
        for _thread, _pc, offset, size, value in self._trace.raw:
            old = int.from_bytes(image[offset : offset + size], "little")
            image[offset : offset + size] = value.to_bytes(size, "little")
            yield image, old

    def places(self, number: int) -> tuple[str, ...]:
        """The last stores up to ``number``, newest last."""
        first = max(0, number - TRAIL)
        return tuple(str(self._trace[each]) for each in range(first, number))


@attrs.frozen(kw_only=True)
class Failure:
    """An image that a check refused."""

    store: int
    """How many stores had been made; 0 where the memory was as it was at first."""
    offset: int
    """Byte of the last one."""
    old: int
    """The word before the store."""
    new: int
    """The word that was stored."""
    landed: int = WORD
    """Low bytes of it that landed: fewer than 8 of a store that was torn."""
    size: int = WORD
    """Bytes of the store."""
    error: BaseException
    """What the check raised."""
    image: bytes = attrs.field(repr=False)
    """The memory as the check saw it."""
    trail: tuple[str, ...] = ()
    """The last stores of a native program, each with its thread, function, file and line."""

    def __str__(self) -> str:
        if not self.store:
            where = "before the first store"
        else:
            torn = "" if self.landed >= self.size else f", of which {self.landed} bytes landed"
            width = 2 + 2 * self.size
            where = (
                f"after store {self.store}, to byte {self.offset}: "
                f"{self.old:#0{width}x} became {self.new:#0{width}x}{torn}"
            )
        text = str(self.error)
        message = type(self.error).__name__ + (f": {text}" if text else "")
        if not self.trail:
            return f"{where}\n  {message}"
        trail = "".join(f"\n    {each}" for each in self.trail)
        return f"{where}\n  {message}\n  the last stores, newest last:{trail}"


@attrs.frozen(kw_only=True)
class CrashReport:
    """What came of a crashtest."""

    stores: int
    """Stores that the writer made."""
    images: int
    """Images that were checked."""
    failure: Failure | None = None
    """The one after the fewest stores; None where all are readable."""

    @property
    def ok(self) -> bool:
        """Whether every image is readable."""
        return self.failure is None

    def __str__(self) -> str:
        count = f"{self.images:,} images of {self.stores:,} stores"
        if self.failure is None:
            return f"{count}: all can be read"
        return f"{count}: a crash leaves what cannot be read, first {self.failure}"


class CrashTestError(AssertionError):
    """A crash leaves an image that cannot be read; ``report`` says which."""

    def __init__(self, report: CrashReport) -> None:
        super().__init__(str(report))
        self.report = report


def crashtest(
    write: Callable[[Any], object],
    check: Check,
    *,
    size: int = 0,
    memory: Memory | None = None,
    setup: Callable[[RecordedMemory], Any] | None = None,
    every: int = 1,
    torn: bool = False,
) -> CrashReport:
    """Run a writer, and check the memory as a crash after each of its stores would leave it.

    ``write`` is given a memory of ``size`` zero bytes, or one that records the stores into
    ``memory``. With ``setup``, that is given the memory first, its stores are not tested, and
    ``write`` is given what it gives. ``check`` is given the bytes of an image, and all notes up to
    it if it takes two arguments (``RecordedMemory.note``); it raises where something is wrong.

    ``every`` checks only every so many stores, and the last; if one fails, those before it are
    checked as well, for the smallest. With ``torn`` the images in which a store landed in part are
    checked too: writers that store aligned words need not survive this, others must.

    ``write`` may be a function of a native program, ``program.entry("write", vmo)``: its stores
    into the first memory among its arguments are tested (or into ``memory``), of which one that
    the machine makes in parts (16 bytes of SSE, REP MOVS) counts as several.

    What ``write`` and ``setup`` raise is raised; what ``check`` raises is in the report.
    """
    if every < 1:
        raise ValueError(f"every {every} stores: it is 1 or more")
    if hasattr(write, "record"):
        if setup is not None or size:
            raise ValueError("a native function brings its memory: leave out size and setup")
        return _Asking(NativeStores(write.record(memory)), check, torn=torn).report(every)
    under: Memory = BytesMemory(size) if memory is None else memory
    subject = RecordedMemory(under)
    given: Any = subject
    if setup is not None:
        given = setup(subject)
        subject.restart()
    write(given)
    return _Asking(subject, check, torn=torn).report(every)


class _Asking:
    """Asks the check about images."""

    def __init__(self, memory: Stores, check: Check, *, torn: bool) -> None:
        self.memory = memory
        self.check = check
        self.torn = torn
        self.images = 0
        self.notes = _takes_notes(check)
        self.before = takes_before(check)

    def report(self, every: int) -> CrashReport:
        stores = self.memory.stores
        sound = -1
        """The last image that was checked."""
        failure: Failure | None = None
        for number, (image, old) in enumerate(self.memory.images()):
            if number % every and number != stores:
                continue
            failure = self.ask(number, image, old)
            if failure is not None:
                break
            sound = number
        if failure is not None:
            failure = self.smallest(sound, failure)
        return CrashReport(stores=stores, images=self.images, failure=failure)

    def smallest(self, sound: int, failure: Failure) -> Failure:
        """Of the images between one that is sound and one that is not, the first to fail."""
        if failure.store - sound > 1:
            for number, (image, old) in enumerate(self.memory.images()):
                if sound < number < failure.store:
                    found = self.ask(number, image, old)
                    if found is not None:
                        return found
        return failure

    def ask(self, number: int, image: bytearray, old: int) -> Failure | None:
        """Ask about the image after some stores, and before that about its torn ones."""
        before: bytes | None = None
        if number and self.before:
            offset, _, size = self.memory.store(number)
            earlier = bytearray(image)
            earlier[offset : offset + size] = old.to_bytes(size, "little")
            before = bytes(earlier)
        for landed in self.torn_parts(number):
            failure = self.ask_torn(number, image, old, landed, before)
            if failure is not None:
                return failure
        whole = bytes(image)
        error = self.asked(whole, number, before)
        return None if error is None else self.failure(number, old, None, error, whole)

    def torn_parts(self, number: int) -> range:
        """Low bytes of a store that land where it is torn."""
        return range(1, self.memory.store(number)[2]) if self.torn and number else range(0)

    def ask_torn(
        self, number: int, image: bytearray, old: int, landed: int, before: bytes | None
    ) -> Failure | None:
        offset, value, size = self.memory.store(number)
        mask = (1 << 8 * landed) - 1
        word = (old & ~mask) | (value & mask)
        if word in {old, value}:
            return None  # the image is one that is checked in any case
        torn = bytearray(image)
        torn[offset : offset + size] = word.to_bytes(size, "little")
        whole = bytes(torn)
        # What is noted behind the store is not true yet.
        error = self.asked(whole, number - 1, before)
        return None if error is None else self.failure(number, old, landed, error, whole)

    def asked(self, image: bytes, number: int, before: bytes | None) -> BaseException | None:
        """What the check raises; None where it has nothing to say."""
        self.images += 1
        more: dict[str, Any] = {"before": before} if self.before else {}
        try:
            if self.notes:
                self.check(image, self.memory.notes(number), **more)
            else:
                self.check(image, **more)
        except Exception as error:  # noqa: BLE001 (whatever a check raises is its verdict)
            return error
        return None

    def failure(
        self, number: int, old: int, landed: int | None, error: BaseException, image: bytes
    ) -> Failure:
        offset, value, size = self.memory.store(number) if number else (0, 0, WORD)
        return Failure(
            store=number,
            offset=offset,
            old=old,
            new=value,
            landed=size if landed is None else landed,
            size=size,
            error=error,
            image=image,
            trail=self.memory.places(number),
        )


def takes_before(check: Check) -> bool:
    """Whether a check has a parameter ``before``."""
    try:
        return "before" in inspect.signature(check).parameters
    except (TypeError, ValueError):
        return False


def _takes_notes(check: Check) -> bool:
    """Whether a check takes notes beside the image."""
    try:
        parameters = inspect.signature(check).parameters.values()
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [
        each
        for each in parameters
        if each.kind in kinds and each.default is inspect.Parameter.empty and each.name != "before"
    ]
    return len(needed) > 1

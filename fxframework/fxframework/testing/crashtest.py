"""crashtest: checks the memory that a crash would leave after every store of a writer.

    def write(memory):
        log = MyLog(memory)
        log.append(b"hello")

    def check(image):
        MyLog.read(image)          # raises for an invalid image

    report = crashtest(write, check, size=4096)
    assert report.ok, report

The writer runs once, on a memory that records its stores. Then each image is checked: the memory
before any store, after the first store, after the second, and so on.

A function of a native program is tested in the same way, after every store of the machine code:
``crashtest(program.entry("write", vmo), check)``; the report names the line of the store.
"""

from __future__ import annotations

import inspect
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from fxframework.io.memory import BytesMemory
from fxframework.io.words import WORD
from fxframework.model.target import Memory

__all__ = ["CrashReport", "CrashTestError", "Failure", "RecordedMemory", "crashtest"]

Check = Callable[..., object]
"""``check(image)`` or ``check(image, notes)``, which raises or returns False for an invalid image.

If it has a parameter ``before``, that is the image before the last store; None for the first image.
"""
NO_STORE = (0, 0, WORD)
"""In place of offset, value and size of the last store: there was none."""
TRAIL = 10
"""Stores of a native program that a report shows."""


class Stores:
    """The recorded stores of one run."""

    first = b""
    """The contents of the memory before the first store."""
    _growths: Sequence[tuple[int, int]] = ()
    """After how many stores the region grew, and its size then."""

    @property
    def stores(self) -> int:
        """Number of stores made."""
        raise NotImplementedError

    def store(self, number: int) -> tuple[int, int, int]:
        """Return offset, value and size in bytes of store ``number``, from 1."""
        raise NotImplementedError

    def notes(self, stores: int) -> list[Any]:  # noqa: ARG002 (Python writers make some)
        """Return the notes made before store ``stores + 1``; by default none."""
        return []

    def places(self, number: int) -> tuple[str, ...]:  # noqa: ARG002 (native programs have some)
        """Return the last stores up to ``number`` as text, newest last, if they can be named."""
        return ()

    def images(self) -> Iterator[tuple[bytearray, int]]:
        """Yield the memory after 0, 1, 2 … stores, updated in place, and the replaced value."""
        image = bytearray(self.first)
        old_value = 0
        growths = iter([*self._growths, (-1, 0)])
        grown_after, room = next(growths)
        for number in range(self.stores + 1):
            if number:
                offset, value, size = self.store(number)
                old_value = int.from_bytes(image[offset : offset + size], "little")
                image[offset : offset + size] = value.to_bytes(size, "little")
            while grown_after == number:
                image.extend(bytes(max(0, room - len(image))))
                grown_after, room = next(growths)
            yield image, old_value


class RecordedMemory(Stores):
    """A memory that records every store into it (``fxframework.model.target.Memory``)."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.restart()

    def restart(self) -> None:
        """Forget the recorded stores; the current contents become the first image."""
        self._offsets = array("Q")
        self._values = array("Q")
        self._growths: list[tuple[int, int]] = []
        self._notes: list[tuple[int, Any]] = []
        self.first = self._memory.read(0, self._memory.size)

    @property
    def size(self) -> int:
        """Bytes in the region."""
        return self._memory.size

    @property
    def stores(self) -> int:
        """Number of stores made."""
        return len(self._values)

    def load_u64(self, offset: int) -> int:
        """Return the word at byte ``offset``."""
        return self._memory.load_u64(offset)

    def store_u64(self, offset: int, value: int) -> None:
        """Store the word at byte ``offset``."""
        self._memory.store_u64(offset, value)
        self._offsets.append(offset)
        self._values.append(value)

    def read(self, offset: int, n: int) -> bytes:
        """Return ``n`` bytes from ``offset``."""
        return self._memory.read(offset, n)

    def write(self, offset: int, buffer: bytes) -> None:
        """Store whole words in ascending order."""
        self._memory.write(offset, buffer)
        self._offsets.extend(range(offset, offset + len(buffer), WORD))
        for start in range(0, len(buffer), WORD):
            word = buffer[start : start + WORD]
            self._values.append(int.from_bytes(word, "little"))

    def grow(self, size: int) -> None:
        """Grow the region to at least ``size`` bytes."""
        self._memory.grow(size)
        self._growths.append((self.stores, self._memory.size))

    def note(self, what: Any) -> None:
        """Add a note; a check that takes notes gets all notes made before its image.

        For example, ``memory.note(n)`` after the commit of record ``n`` lets the check verify that
        no committed record is missing.
        """
        self._notes.append((self.stores, what))

    def store(self, number: int) -> tuple[int, int, int]:
        """Return offset, value and size in bytes of store ``number``, from 1."""
        return self._offsets[number - 1], self._values[number - 1], WORD

    def notes(self, stores: int) -> list[Any]:
        """Return the notes made before store ``stores + 1``."""
        return [what for stores_before, what in self._notes if stores_before <= stores]


class NativeStores(Stores):
    """The stores of a native program into one memory (``fx_emulator.native.StoreTrace``)."""

    def __init__(self, trace: Any) -> None:
        self._trace = trace
        self.first = trace.first

    @property
    def stores(self) -> int:
        """Number of stores made."""
        return len(self._trace.raw)

    def store(self, number: int) -> tuple[int, int, int]:
        """Return offset, value and size in bytes of store ``number``, from 1."""
        store = self._trace.raw[number - 1]
        _thread, _pc, offset, size, value = store
        return offset, value, size

    def places(self, number: int) -> tuple[str, ...]:
        """Return the last stores up to ``number``, newest last."""
        first = max(0, number - TRAIL)
        return tuple(str(self._trace[index]) for index in range(first, number))


@attrs.frozen(kw_only=True)
class Failure:
    """An image that a check rejected."""

    store: int
    """Number of stores made before it; 0 for the first image."""
    offset: int
    """Byte offset of the last store."""
    old: int
    """The word before the store."""
    new: int
    """The stored word."""
    landed: int = WORD
    """Number of low bytes that were written: fewer than ``size`` for a torn store."""
    size: int = WORD
    """Size of the store in bytes."""
    error: BaseException
    """The exception that the check raised."""
    image: bytes = attrs.field(repr=False)
    """The image."""
    trail: tuple[str, ...] = ()
    """The last stores of a native program, each with its thread, function, file and line."""
    final: bool = False
    """Whether only a check for the end of the writer rejected it."""

    def __str__(self) -> str:
        if self.final:
            place = f"when the writer had ended, after {_counted(self.store, 'store')}"
        elif not self.store:
            place = "before the first store"
        else:
            width = 2 + 2 * self.size  # with 0x
            place = (
                f"after store {self.store}, to byte {self.offset}: "
                f"{self.old:#0{width}x} became {self.new:#0{width}x}"
            )
            if self.landed < self.size:
                place += f", of which {_counted(self.landed, 'byte')} landed"
        text = str(self.error)
        message = type(self.error).__name__
        if text:
            message += f": {text}"
        if not self.trail:
            return f"{place}\n  {message}"
        trail = "".join(f"\n    {store}" for store in self.trail)
        return f"{place}\n  {message}\n  the last stores, newest last:{trail}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


@attrs.frozen(kw_only=True)
class CrashReport:
    """The result of a crashtest."""

    stores: int
    """Number of stores that the writer made."""
    images: int
    """Number of checked images."""
    failure: Failure | None = None
    """The failure after the fewest stores; None if all images are readable."""

    @property
    def ok(self) -> bool:
        """Whether every image is readable."""
        return self.failure is None

    def __str__(self) -> str:
        count = f"{_counted(self.images, 'image')} of {_counted(self.stores, 'store')}"
        if self.failure is None:
            readable = "it" if self.images == 1 else "all"
            return f"{count}: {readable} can be read"
        if self.failure.final:
            return f"{count}: the last image is wrong {self.failure}"
        return f"{count}: a crash can leave an unreadable image, first {self.failure}"


class CrashTestError(AssertionError):
    """A crash can leave an unreadable image; ``report`` has the details."""

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
    final: Check | None = None,
) -> CrashReport:
    """Run a writer, and check the memory that a crash after each of its stores would leave.

    ``write`` gets a memory of ``size`` zero bytes, or one that records the stores into ``memory``.
    ``setup``, if given, gets the memory first; its stores are not tested, and its result is passed
    to ``write``. ``check`` gets the bytes of an image, and all notes made before it if it takes
    two arguments (``RecordedMemory.note``); it raises or returns False for an invalid image.

    With ``every``, only every so many stores and the last are checked; after a failure, the images
    before it are checked to find the first failure. With ``torn``, images with a partial store are
    checked, too: writers that store aligned words need not survive these, others must.

    ``final`` is an additional check of the last image, when the writer has ended: what must hold
    then but not after a crash. An attribute ``final`` of ``check``, as ``reads_back`` has one, is
    such a check as well.

    ``write`` may be a function of a native program, ``program.entry("write", vmo)``: its stores
    into ``memory``, or else the first memory among its arguments, are tested. A store that the
    machine makes in parts (16 bytes of SSE, REP MOVS) counts as several.

    Exceptions of ``write`` and ``setup`` propagate; those of ``check`` are in the report.
    """
    if every < 1:
        raise ValueError(f"invalid every={every}: must be 1 or more")
    if hasattr(write, "record"):
        if setup is not None or size:
            raise ValueError("a native function has its own memory: omit size and setup")
        stores = NativeStores(write.record(memory))
        return _Checker(stores, check, final, torn=torn).report(every)
    memory_below: Memory = BytesMemory(size) if memory is None else memory
    subject = RecordedMemory(memory_below)
    argument: Any = subject
    if setup is not None:
        argument = setup(subject)
        subject.restart()
    write(argument)
    return _Checker(subject, check, final, torn=torn).report(every)


class _Check:
    """A check, and which arguments it takes beside the image."""

    def __init__(self, function: Check) -> None:
        self.function = function
        self.takes_notes = _takes_notes(function)
        self.takes_before = takes_before(function)

    def error(self, image: bytes, before: bytes | None, notes: list[Any]) -> Exception | None:
        """Return the exception that it raises, or one for False; None if it accepts the image."""
        arguments = [image, notes] if self.takes_notes else [image]
        keywords: dict[str, Any] = {"before": before} if self.takes_before else {}
        try:
            answer = self.function(*arguments, **keywords)
        except Exception as error:  # noqa: BLE001 (any exception is a verdict)
            return error
        if isinstance(answer, bool | np.bool_) and not answer:
            return AssertionError("the check returned False")
        return None


class _Checker:
    """Applies a check to images."""

    def __init__(self, memory: Stores, check: Check, final: Check | None, *, torn: bool) -> None:
        self.memory = memory
        self.check = _Check(check)
        self.finals = [_Check(function) for function in final_checks(check, final)]
        self.torn = torn
        self.images = 0

    def report(self, every: int) -> CrashReport:
        stores = self.memory.stores
        last_sound = -1
        """The last image that was checked."""
        failure: Failure | None = None
        for store_number, (image, old_word) in enumerate(self.memory.images()):
            if store_number % every and store_number != stores:
                continue
            failure = self.check_image(store_number, image, old_word)
            if failure is not None:
                break
            last_sound = store_number
        if failure is not None:
            failure = self.first_failure(last_sound, failure)
        else:
            failure = self.check_end(store_number, bytes(image), old_word)
        return CrashReport(stores=stores, images=self.images, failure=failure)

    def first_failure(self, sound: int, failure: Failure) -> Failure:
        """Return the first failure after the last sound image."""
        if failure.store - sound > 1:
            for store_number, (image, old_word) in enumerate(self.memory.images()):
                if sound < store_number < failure.store:
                    earlier_failure = self.check_image(store_number, image, old_word)
                    if earlier_failure is not None:
                        return earlier_failure
        return failure

    def check_end(self, store_number: int, image: bytes, old_word: int) -> Failure | None:
        """Check what must hold when the writer has ended."""
        for check in self.finals:
            error = check.error(image, None, self.memory.notes(store_number))
            if error is not None:
                _, _, size = self.last_store(store_number)
                failure = self.failure(store_number, old_word, size, error, image)
                return attrs.evolve(failure, final=True)
        return None

    def check_image(self, store_number: int, image: bytearray, old_word: int) -> Failure | None:
        """Check the image after some stores, and before that its torn variants."""
        image_before: bytes | None = None
        if store_number and self.check.takes_before:
            image_before = self.changed(image, store_number, old_word)
        _, _, size = self.last_store(store_number)
        for landed, variant in self.variants(store_number, image, old_word):
            self.images += 1
            # Notes made after a store that is torn do not apply yet.
            notes = self.memory.notes(store_number - (landed < size))
            error = self.check.error(variant, image_before, notes)
            if error is not None:
                return self.failure(store_number, old_word, landed, error, variant)
        return None

    def variants(
        self, store_number: int, image: bytearray, old_word: int
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the images with a part of the last store, if wanted, and with all of it.

        Before each is the number of low bytes that landed.
        """
        _, value, size = self.last_store(store_number)
        for landed in range(1, size) if self.torn and store_number else ():
            mask = (1 << 8 * landed) - 1  # the low bytes come from the new word, the others stay
            word = (old_word & ~mask) | (value & mask)
            if word not in {old_word, value}:  # others are images that are checked anyway
                yield landed, self.changed(image, store_number, word)
        yield size, bytes(image)

    def last_store(self, store_number: int) -> tuple[int, int, int]:
        """Return offset, value and size of the store before an image."""
        return self.memory.store(store_number) if store_number else NO_STORE

    def changed(self, image: bytearray, store_number: int, word: int) -> bytes:
        """Return an image with another word in place of the last store's."""
        offset, _, size = self.last_store(store_number)
        changed = bytearray(image)
        changed[offset : offset + size] = word.to_bytes(size, "little")
        return bytes(changed)

    def failure(
        self, store_number: int, old_word: int, landed: int, error: Exception, image: bytes
    ) -> Failure:
        offset, value, size = self.last_store(store_number)
        return Failure(
            store=store_number,
            offset=offset,
            old=old_word,
            new=value,
            landed=landed,
            size=size,
            error=error,
            image=image,
            trail=self.memory.places(store_number),
        )


def final_checks(check: Check, final: Check | None) -> list[Check]:
    """Return the checks for the end: ``final``, and the attribute ``final`` of both."""
    candidates = (final, getattr(check, "final", None), getattr(final, "final", None))
    return [candidate for candidate in candidates if candidate is not None]


def takes_before(check: Check) -> bool:
    """Return whether a check has a parameter ``before``."""
    try:
        return "before" in inspect.signature(check).parameters
    except (TypeError, ValueError):
        return False


def _takes_notes(check: Check) -> bool:
    """Return whether a check takes notes as a second argument."""
    try:
        parameters = inspect.signature(check).parameters.values()
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [
        parameter
        for parameter in parameters
        if parameter.kind in kinds
        and parameter.default is inspect.Parameter.empty
        and parameter.name != "before"
    ]
    return len(required) > 1

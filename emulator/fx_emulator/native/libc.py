"""The part of libc that a writer of telemetry pulls in, as functions of the target.

What moves memory is in ``routines``, in machine code. The rest is here: allocation, strings that
are only read, printf without floating point, assertions, the C++ runtime's entry points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fx_emulator.native.calls import Blocked
from fx_emulator.native.heap import Heap
from fx_emulator.native.printf import format_text

__all__ = ["LIBC", "Table"]

Table = dict[str, tuple[int, Callable[..., int | None]]]
"""Name to the number of integer arguments and ``function(machine, *arguments)``."""

_ENOMEM, _EINVAL = 12, 22
_NS = 1_000_000_000
_CLOCKS = {0: "monotonic_ns", 1: "monotonic_ns", 4: "monotonic_ns", 7: "boot_ns"}
_ALL = (1 << 64) - 1
_LONGEST = 1 << 24


# --- allocation --------------------------------------------------------------------------------


def malloc(machine: Any, size: int) -> int:
    """A block of memory; 0 where there is none."""
    return Heap.of(machine).allocate(size)


def calloc(machine: Any, count: int, size: int) -> int:
    """A block of zeros."""
    at = Heap.of(machine).allocate(count * size) if count * size <= _ALL else 0
    if at:
        machine.store(at, bytes(Heap.of(machine).size(at)))
    return at


def realloc(machine: Any, old: int, size: int) -> int:
    """A block of another size with the same beginning."""
    heap = Heap.of(machine)
    at = heap.allocate(size)
    if old and at:
        machine.store(at, machine.space.read(old, min(size, heap.size(old))))
        heap.release(old)
    return at


def free(machine: Any, at: int) -> None:
    """Give a block back."""
    Heap.of(machine).release(at)


def aligned_alloc(machine: Any, align: int, size: int) -> int:
    """A block at a multiple of ``align``."""
    return Heap.of(machine).allocate(size, max(16, align))


def posix_memalign(machine: Any, out: int, align: int, size: int) -> int:
    """Likewise, into a variable."""
    if align < 8 or align & align - 1:
        return _EINVAL
    at = aligned_alloc(machine, align, size)
    if not at:
        return _ENOMEM
    machine.store(out, at.to_bytes(8, "little"))
    return 0


def operator_new(machine: Any, size: int) -> int:
    """Operator new: never null."""
    at = malloc(machine, size)
    if not at:
        raise machine.error("operator new: the heap of the emulated program is full")
    return at


# --- strings -----------------------------------------------------------------------------------


def _string(machine: Any, at: int) -> bytes:
    text: bytes = machine.space.read_string(at, _LONGEST)
    return text


def _order(left: bytes, right: bytes) -> int:
    return (left > right) - (left < right)


def strlen(machine: Any, at: int) -> int:
    """Bytes before the NUL."""
    return len(_string(machine, at))


def strnlen(machine: Any, at: int, most: int) -> int:
    """Bytes before the NUL, up to ``most``."""
    return len(machine.space.read_string(at, most)) if most else 0


def strcmp(machine: Any, left: int, right: int) -> int:
    """Compare two strings."""
    return _order(_string(machine, left), _string(machine, right))


def strncmp(machine: Any, left: int, right: int, most: int) -> int:
    """Compare the beginnings of two strings."""
    read = machine.space.read_string
    return _order(read(left, most), read(right, most)) if most else 0


def memcmp(machine: Any, left: int, right: int, size: int) -> int:
    """Compare bytes."""
    return _order(machine.space.read(left, size), machine.space.read(right, size))


def memchr(machine: Any, at: int, byte: int, size: int) -> int:
    """Where a byte is first."""
    found = machine.space.read(at, size).find(byte & 0xFF)
    return at + found if found >= 0 else 0


def strchr(machine: Any, at: int, byte: int) -> int:
    """Where a byte of a string is first; its NUL counts."""
    found = (_string(machine, at) + b"\0").find(byte & 0xFF)
    return at + found if found >= 0 else 0


def strrchr(machine: Any, at: int, byte: int) -> int:
    """Where a byte of a string is last; its NUL counts."""
    found = (_string(machine, at) + b"\0").rfind(byte & 0xFF)
    return at + found if found >= 0 else 0


def strstr(machine: Any, at: int, part: int) -> int:
    """Where a string first has another within."""
    found = _string(machine, at).find(_string(machine, part))
    return at + found if found >= 0 else 0


def strdup(machine: Any, at: int) -> int:
    """A copy of a string."""
    text = _string(machine, at) + b"\0"
    made = malloc(machine, len(text))
    if made:
        machine.store(made, text)
    return made


def strcat(machine: Any, target: int, source: int) -> int:
    """Put a string behind another."""
    machine.store(target + strlen(machine, target), _string(machine, source) + b"\0")
    return target


# --- printf ------------------------------------------------------------------------------------


class _Registers:
    """The variable arguments of a call, in registers first."""

    def __init__(self, machine: Any, skip: int) -> None:
        self._machine = machine
        self._next = skip

    def __call__(self) -> int:
        self._next += 1
        value: int = self._machine.arguments(self._next)[-1]
        return value


class _VaList:
    """The variable arguments of a ``va_list``."""

    def __init__(self, machine: Any, at: int) -> None:
        self._space = machine.space
        self._at = at

    def __call__(self) -> int:
        space, at = self._space, self._at
        offset = space.read_word(at, 4)
        if offset < 48:
            space.write_word(at, offset + 8, 4)
            place = space.read_word(at + 16) + offset
        else:
            place = space.read_word(at + 8)
            space.write_word(at + 8, place + 8)
        value: int = space.read_word(place)
        return value


def _text(machine: Any, form: int, argument: Callable[[], int]) -> bytes:
    def string(at: int, most: int | None) -> bytes:
        text: bytes = machine.space.read_string(at, _LONGEST if most is None else most)
        return text if most != 0 else b""

    return format_text(_string(machine, form), argument, string)


def _into(machine: Any, at: int, size: int, text: bytes) -> int:
    if size:
        machine.store(at, text[: size - 1] + b"\0")
    return len(text)


def _print(machine: Any, text: bytes) -> int:
    machine.state["output"] = machine.state.get("output", b"") + text
    return len(text)


def snprintf(machine: Any, at: int, size: int, form: int) -> int:
    """Format into a buffer."""
    return _into(machine, at, size, _text(machine, form, _Registers(machine, 3)))


def snprintf_checked(machine: Any, at: int, size: int, _flag: int, _room: int, form: int) -> int:
    """Likewise, as -D_FORTIFY_SOURCE calls it."""
    return _into(machine, at, size, _text(machine, form, _Registers(machine, 5)))


def vsnprintf(machine: Any, at: int, size: int, form: int, arguments: int) -> int:
    """Likewise, with a ``va_list``."""
    return _into(machine, at, size, _text(machine, form, _VaList(machine, arguments)))


def sprintf(machine: Any, at: int, form: int) -> int:
    """Format into a buffer without a limit."""
    return _into(machine, at, _ALL, _text(machine, form, _Registers(machine, 2)))


def printf(machine: Any, form: int) -> int:
    """Format to the program's output."""
    return _print(machine, _text(machine, form, _Registers(machine, 1)))


def fprintf(machine: Any, _file: int, form: int) -> int:
    """Likewise, whatever the file."""
    return _print(machine, _text(machine, form, _Registers(machine, 2)))


def puts(machine: Any, at: int) -> int:
    """A line of output."""
    return _print(machine, _string(machine, at) + b"\n")


def fputs(machine: Any, at: int, _file: int) -> int:
    """Output."""
    return _print(machine, _string(machine, at))


def putchar(machine: Any, byte: int) -> int:
    """One byte of output."""
    _print(machine, bytes([byte & 0xFF]))
    return byte


# --- the end of a program ----------------------------------------------------------------------


def abort(machine: Any) -> None:
    """End the program."""
    raise machine.error("abort() was called")


def assert_fail(machine: Any, expression: int, file: int, line: int, function: int) -> None:
    """What a failed assert() calls."""
    where = _string(machine, file).decode(errors="replace").rsplit("/", 1)[-1]
    what = _string(machine, expression).decode(errors="replace")
    inside = f", in {_string(machine, function).decode(errors='replace')}" if function else ""
    raise machine.error(f"assertion failed: {what} ({where}:{line & 0xFFFFFFFF}{inside})")


def stack_smashed(machine: Any) -> None:
    """What the stack protector calls."""
    raise machine.error("the stack protector found a buffer overrun on the stack")


def pure_virtual(machine: Any) -> None:
    """What a call of a pure virtual function calls."""
    raise machine.error("a pure virtual function was called")


def unwind(machine: Any) -> None:
    """What C++ exceptions and Rust panics call."""
    raise machine.error("the program throws; build it with -fno-exceptions, or with panic=abort")


def finish(machine: Any, code: int) -> None:
    """End the thread that calls it."""
    del machine
    raise Blocked("exit", code & 0xFF)


def nothing(machine: Any, *_: int) -> int:
    """Succeed without doing anything."""
    del machine
    return 0


# --- threads and time --------------------------------------------------------------------------


def pthread_self(machine: Any) -> int:
    """The thread's pointer."""
    pointer: int = machine.current.thread_pointer
    return pointer


def errno_location(machine: Any) -> int:
    """Where the thread's errno is."""
    pointer: int = machine.current.thread_pointer + 0x80
    return pointer


def tls_get_addr(machine: Any, index: int) -> int:
    """Where a variable of the thread is: module and offset are at ``index``."""
    begin: int = machine.current.thread_pointer - machine.tls_size
    offset: int = machine.space.read_word(index + 8)
    return begin + offset


def guard_acquire(machine: Any, guard: int) -> int:
    """Whether a static variable is still to be initialised."""
    return int(not machine.space.read(guard, 1)[0])


def guard_release(machine: Any, guard: int) -> None:
    """It is initialised."""
    machine.store(guard, b"\x01")


def clock_gettime(machine: Any, clock: int, at: int) -> int:
    """Seconds and nanoseconds of the emulated clock."""
    name = _CLOCKS.get(clock & 0xFFFFFFFF)
    if name is None:
        return -1
    now = getattr(machine.target.clock, name)()
    machine.store(at, (now // _NS).to_bytes(8, "little") + (now % _NS).to_bytes(8, "little"))
    return 0


def nanosleep(machine: Any, at: int, _left: int) -> int:
    """Sleep."""
    seconds, ns = machine.space.read_word(at), machine.space.read_word(at + 8)
    raise Blocked("sleep", ns=seconds * _NS + ns)


def usleep(machine: Any, us: int) -> int:
    """Sleep."""
    del machine
    raise Blocked("sleep", ns=(us & 0xFFFFFFFF) * 1000)


def sched_yield(machine: Any) -> int:
    """Let others go first."""
    del machine
    raise Blocked("yield")


def sched_getcpu(machine: Any) -> int:
    """Number of the CPU that the thread is on."""
    number: int = machine.cpu.number
    return number


def getpid(machine: Any) -> int:
    """The process's koid."""
    koid: int = machine.current.process_koid
    return koid & 0x7FFFFFFF


LIBC: Table = {
    "malloc": (1, malloc),
    "calloc": (2, calloc),
    "realloc": (2, realloc),
    "free": (1, free),
    "aligned_alloc": (2, aligned_alloc),
    "posix_memalign": (3, posix_memalign),
    "strlen": (1, strlen),
    "strnlen": (2, strnlen),
    "strcmp": (2, strcmp),
    "strncmp": (3, strncmp),
    "memcmp": (3, memcmp),
    "bcmp": (3, memcmp),
    "memchr": (3, memchr),
    "strchr": (2, strchr),
    "strrchr": (2, strrchr),
    "strstr": (2, strstr),
    "strdup": (1, strdup),
    "strcat": (2, strcat),
    "snprintf": (3, snprintf),
    "__snprintf_chk": (5, snprintf_checked),
    "vsnprintf": (4, vsnprintf),
    "sprintf": (2, sprintf),
    "printf": (1, printf),
    "fprintf": (2, fprintf),
    "puts": (1, puts),
    "fputs": (2, fputs),
    "putchar": (1, putchar),
    "abort": (0, abort),
    "exit": (1, finish),
    "_exit": (1, finish),
    "__assert_fail": (4, assert_fail),
    "__stack_chk_fail": (0, stack_smashed),
    "__cxa_pure_virtual": (0, pure_virtual),
    "__cxa_atexit": (3, nothing),
    "__cxa_finalize": (1, nothing),
    "__cxa_guard_acquire": (1, guard_acquire),
    "__cxa_guard_release": (1, guard_release),
    "_Znwm": (1, operator_new),
    "_Znam": (1, operator_new),
    "_ZdlPv": (1, free),
    "_ZdlPvm": (1, free),
    "_ZdaPv": (1, free),
    "_ZdaPvm": (1, free),
    "_Unwind_Resume": (0, unwind),
    "__cxa_throw": (0, unwind),
    "__gxx_personality_v0": (0, unwind),
    "rust_eh_personality": (0, unwind),
    "pthread_self": (0, pthread_self),
    "__errno_location": (0, errno_location),
    "__tls_get_addr": (1, tls_get_addr),
    "clock_gettime": (2, clock_gettime),
    "nanosleep": (2, nanosleep),
    "usleep": (1, usleep),
    "sched_yield": (0, sched_yield),
    "sched_getcpu": (0, sched_getcpu),
    "getpid": (0, getpid),
    "fflush": (1, nothing),
    "atexit": (1, nothing),
}

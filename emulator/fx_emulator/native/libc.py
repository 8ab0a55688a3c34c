"""The functions of libc that telemetry writers use, as functions of the target.

Functions that move memory are in ``routines``, in machine code. Here are the others: allocation,
read-only string functions, printf without floating point, assertions, and entry points of the C++
runtime.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from fx_emulator.native.calls import Blocked, Table
from fx_emulator.native.printf import format_text

_ENOMEM = 12
_EINVAL = 22
_ERRNO = 0x80
"""Offset of errno from the thread pointer."""
_NS = 1_000_000_000
_CLOCKS = {0: "monotonic_ns", 1: "monotonic_ns", 4: "monotonic_ns", 7: "boot_ns"}
_ALL = (1 << 64) - 1
_LONGEST = 1 << 24


# --- allocation --------------------------------------------------------------------------------


def calloc(machine: Any, count: int, size: int) -> int:
    """Allocate a block of zeros."""
    if count * size > _ALL:
        return 0
    block_address: int = machine.heap.allocate(count * size)
    if block_address:
        machine.store(block_address, bytes(machine.heap.size(block_address)))
    return block_address


def realloc(machine: Any, old_block: int, size: int) -> int:
    """Move a block to another size, keeping its beginning."""
    heap = machine.heap
    block_address: int = heap.allocate(size)
    if old_block and block_address:
        common_bytes = min(size, heap.size(old_block))
        machine.store(block_address, machine.space.read(old_block, common_bytes))
        heap.release(old_block)
    return block_address


def posix_memalign(machine: Any, out: int, align: int, size: int) -> int:
    """Allocate an aligned block; store its address at ``out``."""
    if align < 8 or align & align - 1:
        return _EINVAL
    block_address = machine.heap.allocate(size, max(16, align))
    if not block_address:
        return _ENOMEM
    machine.store(out, block_address.to_bytes(8, "little"))
    return 0


def operator_new(machine: Any, size: int) -> int:
    """C++ operator new, which never returns null."""
    block_address: int = machine.heap.allocate(size)
    if not block_address:
        raise machine.error("operator new: the heap of the emulated program is full")
    return block_address


# --- strings -----------------------------------------------------------------------------------


def _string(machine: Any, address: int) -> bytes:
    text: bytes = machine.space.read_string(address, _LONGEST)
    return text


def _order(left: bytes, right: bytes) -> int:
    """Return -1, 0 or 1: which of two strings comes first."""
    if left == right:
        return 0
    return 1 if left > right else -1


def strnlen(machine: Any, address: int, most: int) -> int:
    """Return the length of a string, at most ``most``."""
    if not most:
        return 0
    return len(machine.space.read_string(address, most))


def strncmp(machine: Any, left: int, right: int, most: int) -> int:
    """Compare at most ``most`` bytes of two strings."""
    if not most:
        return 0
    read = machine.space.read_string
    return _order(read(left, most), read(right, most))


def memcmp(machine: Any, left: int, right: int, size: int) -> int:
    """Compare ``size`` bytes."""
    read = machine.space.read
    return _order(read(left, size), read(right, size))


def strdup(machine: Any, address: int) -> int:
    """Copy a string into a new block."""
    text = _string(machine, address) + b"\0"
    block_address: int = machine.heap.allocate(len(text))
    if block_address:
        machine.store(block_address, text)
    return block_address


def strcat(machine: Any, target: int, source: int) -> int:
    """Append a string to another."""
    end = target + len(_string(machine, target))
    machine.store(end, _string(machine, source) + b"\0")
    return target


# --- printf ------------------------------------------------------------------------------------


def _passed(machine: Any, skip: int) -> Iterator[int]:
    """Yield the arguments of a call after the first ``skip``: from registers, then the stack."""
    for count in itertools.count(skip + 1):
        yield machine.arguments(count)[-1]


def _listed(machine: Any, va_list: int) -> Iterator[int]:
    """Yield the variable arguments of the ``va_list`` at an address.

    Its fields (System V ABI): the offset of the next argument in the saved registers, that of
    floating point, the address of the next argument on the stack, the address of the saved
    registers, of which there are six.
    """
    space = machine.space
    while True:
        register_offset = space.read_word(va_list, 4)
        if register_offset < 48:
            space.write_word(va_list, register_offset + 8, 4)
            argument_address = space.read_word(va_list + 16) + register_offset
        else:
            argument_address = space.read_word(va_list + 8)
            space.write_word(va_list + 8, argument_address + 8)
        yield space.read_word(argument_address)


def _text(machine: Any, form: int, arguments: Iterator[int]) -> bytes:
    """Return a format with its arguments filled in."""

    def string(address: int, most: int | None) -> bytes:
        text: bytes = machine.space.read_string(address, _LONGEST if most is None else most)
        return text

    return format_text(_string(machine, form), arguments, string)


def _into(machine: Any, buffer: int, size: int, text: bytes) -> int:
    """Store as much of a text as fits, with a NUL. Return the length of all of it."""
    if size:
        machine.store(buffer, text[: size - 1] + b"\0")
    return len(text)


def _print(machine: Any, text: bytes) -> int:
    machine.output += text
    return len(text)


def putchar(machine: Any, byte: int) -> int:
    """Print one byte."""
    _print(machine, bytes([byte & 0xFF]))
    return byte


# --- the end of a program ----------------------------------------------------------------------


def assert_fail(machine: Any, expression: int, file: int, line: int, function: int) -> None:
    """Raise the error of a failed assert()."""
    expression_text = _string(machine, expression).decode(errors="replace")
    position = _string(machine, file).decode(errors="replace").rsplit("/", 1)[-1]
    position += f":{line & 0xFFFFFFFF}"
    if function:
        position += f", in {_string(machine, function).decode(errors='replace')}"
    raise machine.error(f"assertion failed: {expression_text} ({position})")


# --- threads and time --------------------------------------------------------------------------


def tls_get_addr(machine: Any, index: int) -> int:
    """Return the address of a thread-local variable; module and offset are at ``index``."""
    begin: int = machine.current.thread_pointer - machine.tls_size
    offset: int = machine.space.read_word(index + 8)
    return begin + offset


def clock_gettime(machine: Any, clock: int, out: int) -> int:
    """Store seconds and nanoseconds of the emulated clock."""
    name = _CLOCKS.get(clock & 0xFFFFFFFF)
    if name is None:
        return -1
    now_ns = getattr(machine.timer, name)()
    seconds = (now_ns // _NS).to_bytes(8, "little")
    machine.store(out, seconds + (now_ns % _NS).to_bytes(8, "little"))
    return 0


def nanosleep(machine: Any, timespec: int, _remaining: int) -> int:
    """Sleep for the timespec at an address."""
    seconds = machine.space.read_word(timespec)
    ns = machine.space.read_word(timespec + 8)
    raise Blocked("sleep", ns=seconds * _NS + ns)


# --- by name -----------------------------------------------------------------------------------


def _match(start: int, offset: int) -> int:
    """Return the address of a match at ``offset`` from ``start``; 0 for -1, which means none."""
    if offset < 0:
        return 0
    return start + offset


def _format(machine: Any, form: int, skip: int) -> bytes:
    """Format text whose arguments follow the first ``skip`` arguments of the call."""
    return _text(machine, form, _passed(machine, skip))


def _blocked(action: Any, result: int = 0, ns: int = 0) -> NoReturn:
    raise Blocked(action, result, ns=ns)


def _failing(message: str) -> Callable[..., NoReturn]:
    """Return a function that ends the program with an error."""

    def fail(machine: Any) -> NoReturn:
        raise machine.error(message)

    return fail


LIBC: Table = {
    # Allocation.
    "malloc": lambda m, size: m.heap.allocate(size),
    "calloc": calloc,
    "realloc": realloc,
    "aligned_alloc": lambda m, align, size: m.heap.allocate(size, max(16, align)),
    "posix_memalign": posix_memalign,
    **dict.fromkeys(("_Znwm", "_Znam"), operator_new),
    **dict.fromkeys(
        ("free", "_ZdlPv", "_ZdlPvm", "_ZdaPv", "_ZdaPvm"), lambda m, at: m.heap.release(at)
    ),
    # Strings; strchr and strrchr can find the NUL.
    "strlen": lambda m, at: len(_string(m, at)),
    "strnlen": strnlen,
    "strcmp": lambda m, left, right: _order(_string(m, left), _string(m, right)),
    "strncmp": strncmp,
    **dict.fromkeys(("memcmp", "bcmp"), memcmp),
    "memchr": lambda m, at, byte, size: _match(at, m.space.read(at, size).find(byte & 0xFF)),
    "strchr": lambda m, at, byte: _match(at, (_string(m, at) + b"\0").find(byte & 0xFF)),
    "strrchr": lambda m, at, byte: _match(at, (_string(m, at) + b"\0").rfind(byte & 0xFF)),
    "strstr": lambda m, at, part: _match(at, _string(m, at).find(_string(m, part))),
    "strdup": strdup,
    "strcat": strcat,
    # Formats; -D_FORTIFY_SOURCE calls the checked variants.
    "snprintf": lambda m, at, size, form: _into(m, at, size, _format(m, form, 3)),
    "__snprintf_chk": lambda m, at, size, _flag, _room, form: _into(
        m, at, size, _format(m, form, 5)
    ),
    "vsnprintf": lambda m, at, size, form, rest: _into(
        m, at, size, _text(m, form, _listed(m, rest))
    ),
    "sprintf": lambda m, at, form: _into(m, at, _ALL, _format(m, form, 2)),
    "printf": lambda m, form: _print(m, _format(m, form, 1)),
    "fprintf": lambda m, _file, form: _print(m, _format(m, form, 2)),
    "puts": lambda m, at: _print(m, _string(m, at) + b"\n"),
    "fputs": lambda m, at, _file: _print(m, _string(m, at)),
    "putchar": putchar,
    "fflush": lambda _m, _file: 0,
    # The end of a program.
    **dict.fromkeys(("exit", "_exit"), lambda _m, code: _blocked("exit", code & 0xFF)),
    "atexit": lambda _m, _function: 0,
    "__assert_fail": assert_fail,
    "__stack_chk_fail": _failing("the stack protector found a buffer overrun on the stack"),
    # The runtime of C++ and Rust.
    "__cxa_pure_virtual": _failing("a pure virtual function was called"),
    "__cxa_atexit": lambda _m, _function, _argument, _handle: 0,
    "__cxa_finalize": lambda _m, _handle: 0,
    "__cxa_guard_acquire": lambda m, guard: int(not m.space.read(guard, 1)[0]),
    "__cxa_guard_release": lambda m, guard: m.store(guard, b"\x01"),
    **dict.fromkeys(
        ("_Unwind_Resume", "__cxa_throw", "__gxx_personality_v0", "rust_eh_personality"),
        _failing("the program throws; build it with -fno-exceptions, or with panic=abort"),
    ),
    # Threads and time.
    "pthread_self": lambda m: m.current.thread_pointer,
    "__errno_location": lambda m: m.current.thread_pointer + _ERRNO,
    "__tls_get_addr": tls_get_addr,
    "clock_gettime": clock_gettime,
    "nanosleep": nanosleep,
    "usleep": lambda _m, us: _blocked("sleep", ns=(us & 0xFFFFFFFF) * 1000),
    "sched_yield": lambda _m: _blocked("yield"),
    "sched_getcpu": lambda m: m.cpu.number,
    "getpid": lambda m: m.current.process_koid & 0x7FFFFFFF,
}

"""What Rust's standard library imports: output, a panic's unwinding, and a system without files.

A panic prints its message through ``write`` and then unwinds, which ends the program with an error.
Files cannot be opened, the environment is empty, and destructors of thread-local keys do not run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from fx_emulator.native.calls import Blocked, Table

_ENOENT = 2
_EBADF = 9
_ENOMEM = 12
_ENOSYS = 38
_ERRNO = 0x80
"""Offset of errno from the thread pointer."""
_FUTEX = 202
_GETTID = 186
_OUTPUTS = frozenset({1, 2})
"""Standard output and standard error."""
_MOST_PARTS = 1024
"""Most parts that writev() takes."""
_END_OF_STACK = 5


def _fail(machine: Any, error: int) -> int:
    """Set errno. Return -1."""
    machine.store(machine.current.thread_pointer + _ERRNO, error.to_bytes(4, "little"))
    return -1


def _failing(error: int) -> Callable[..., int]:
    """Return a function that sets errno and returns -1."""

    def fail(machine: Any) -> int:
        return _fail(machine, error)

    return fail


def write(machine: Any, file: int, address: int, size: int) -> int:
    """Print to standard output or standard error."""
    if file & 0xFFFFFFFF not in _OUTPUTS:
        return _fail(machine, _EBADF)
    machine.output += machine.space.read(address, size)
    return size


def writev(machine: Any, file: int, parts: int, count: int) -> int:
    """Print several parts, whose addresses and sizes are at ``parts``."""
    word = machine.space.read_word
    written = 0
    for number in range(min(count, _MOST_PARTS)):
        part = parts + 16 * number
        written += write(machine, file, word(part), word(part + 8))
    return written


def system_call(machine: Any, number: int) -> int:
    """Wait for a futex, which lets other threads run; or return the thread's id."""
    if number == _FUTEX:
        raise Blocked("yield")
    if number == _GETTID:
        koid: int = machine.current.koid
        return koid
    return _fail(machine, _ENOSYS)


def _end(machine: Any, no_panic: str) -> NoReturn:
    """Raise the error of a panic, with what it printed; ``no_panic`` if there was none."""
    lines = machine.output.decode(errors="replace").strip().splitlines()
    # The last panic, and the line after it, which has the message.
    message = ""
    for number, line in enumerate(lines):
        if "panicked at" in line:
            message = " ".join(text.strip() for text in lines[number : number + 2])
    raise machine.error(message or no_panic)


def error_text(machine: Any, number: int, out: int, size: int) -> int:
    """Store the text of an error number."""
    text = f"error {number & 0xFFFFFFFF}".encode()
    machine.store(out, text[: max(0, size - 1)] + b"\0")
    return 0


def key_create(machine: Any, out: int, _destructor: int) -> int:
    """Create a thread-local key."""
    machine.last_key += 1
    machine.store(out, machine.last_key.to_bytes(4, "little"))
    return 0


def set_specific(machine: Any, key: int, value: int) -> int:
    """Set the calling thread's value of a key."""
    machine.current.specific[key] = value
    return 0


RUST: Table = {
    "write": write,
    "writev": writev,
    "syscall": system_call,
    "getenv": lambda _m, _name: 0,
    "dl_iterate_phdr": lambda _m, _function, _data: 0,
    "munmap": lambda _m, _at, _size: 0,
    "mmap64": _failing(_ENOMEM),
    **dict.fromkeys(("open64", "stat64", "readlink"), _failing(_ENOENT)),
    **dict.fromkeys(("close", "fstat64", "lseek64", "read"), _failing(_EBADF)),
    "realpath": lambda _m, _path, _at: 0,
    "getcwd": lambda _m, _at, _size: 0,
    "__xpg_strerror_r": error_text,
    "pthread_key_create": key_create,
    "pthread_key_delete": lambda _m, _key: 0,
    "pthread_setspecific": set_specific,
    "pthread_getspecific": lambda m, key: m.current.specific.get(key, 0),
    "_Unwind_RaiseException": lambda m: _end(m, "the program throws an exception"),
    "abort": lambda m: _end(m, "abort() was called"),
    "_Unwind_Backtrace": lambda _m, _function, _data: _END_OF_STACK,
    **dict.fromkeys(
        (
            "_Unwind_GetDataRelBase", "_Unwind_GetIP", "_Unwind_GetIPInfo",
            "_Unwind_GetLanguageSpecificData", "_Unwind_GetRegionStart", "_Unwind_GetTextRelBase",
            "_Unwind_SetGR", "_Unwind_SetIP",
        ),
        lambda _m: 0,
    ),
}  # fmt: skip

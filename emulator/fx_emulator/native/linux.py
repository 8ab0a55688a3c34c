"""The Linux system calls of a static executable with one thread, including libc's startup.

Files are a dictionary: a file opened for reading must be in it, and written files are in it
afterwards. The thread runs alone: no other processes, no signals. clone fails with EAGAIN, as on a
system that has reached its limit.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeVar

from fx_emulator.native.calls import Blocked, Call, RefusedError
from fx_emulator.native.errors import NativeError
from fx_emulator.native.space import PAGE, READ, RUN, WRITE, round_up

__all__ = ["Linux"]

_ENOENT, _EBADF, _EAGAIN, _ENOMEM, _EFAULT, _EINVAL = 2, 9, 11, 12, 14, 22
_ENOTTY, _ESPIPE, _ENOSYS = 25, 29, 38
_BRK_AT = 0x5000_0000
_BRK_BYTES = 64 << 20
_MAPS_AT = 0x6000_0000_0000
_FIXED = 0x10
_ANONYMOUS = 0x20
_LARGEST_MAP = 1 << 32
_CREATE, _TRUNCATE, _APPEND, _ACCESS = 0o100, 0o1000, 0o2000, 3
_NS = 1_000_000_000
_PROCESS_ID = 1024
_SET_FS = 0x1002
_MODES = {"regular": 0o100644, "stream": 0o020620}


_F = TypeVar("_F", bound=Callable[..., int])

_CALLS: dict[int, Call] = {}
"""The system calls by number."""
_ANSWERS = {
    0: (
        13, 14, 24, 28, 72, 102, 104, 107, 108, 131, 157, 202, 273,
    ),  # rt_sigaction, rt_sigprocmask, sched_yield, madvise, fcntl, getuid, getgid, geteuid,
    # getegid, sigaltstack, prctl, futex (there is no other thread), set_robust_list
    1: (110,),  # getppid
    _PROCESS_ID: (39, 186, 218),  # getpid, gettid, set_tid_address
    -_ENOENT: (439,),  # faccessat2
    -_EAGAIN: (56, 435),  # clone, clone3
    -_ENOTTY: (16,),  # ioctl
    -_ENOSYS: (99, 334),  # sysinfo, rseq
}  # fmt: skip
"""Numbers of the system calls with a constant result, by the result."""


def _call(number: int, skip: int = 0) -> Callable[[_F], _F]:
    """Make a method a system call, which ignores the first ``skip`` arguments."""

    def enter(function: _F) -> _F:
        _CALLS[number] = Call.of(function.__name__, function, bare=False, skip=skip)
        return function

    return enter


class _File:
    """An open file."""

    def __init__(self, path: str, data: bytearray, *, position: int = 0) -> None:
        self.path = path
        self.data = data
        self.position = position


class Linux:
    """The Linux system of one process."""

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.files: dict[str, bytearray] = {}
        self.exit_code: int | None = None
        self.unknown: dict[int, int] = {}
        """Count of unsupported system calls, by number."""
        self._open: dict[int, _File] = {
            number: _File("output", machine.output) for number in (0, 1, 2)
        }
        self.own: dict[str, bytes] = {}
        """Files of /proc about the process."""
        self._break = _BRK_AT
        machine.map_private("heap", _BRK_AT, _BRK_BYTES, READ | WRITE)

    def call(self) -> int:
        """Execute the system call of the current registers. Return its result."""
        engine = self.machine.engine
        number = engine.get("rax")
        arguments = [engine.get(name) for name in ("rdi", "rsi", "rdx", "r10", "r8", "r9")]
        call = _CALLS.get(number)
        if call is None:
            self.unknown[number] = self.unknown.get(number, 0) + 1
            return -_ENOSYS
        try:
            return call(self, arguments)
        except NativeError as error:
            if error.frames:
                raise
            return -_EFAULT

    # --- files ---

    def _text(self, at: int) -> str:
        text: str = self.machine.space.read_string(at).decode(errors="replace")
        return text

    def _file(self, number: int) -> _File:
        """Return an open file. Raises RefusedError for an invalid number."""
        file = self._open.get(number)
        if file is None:
            raise RefusedError(-_EBADF)
        return file

    def _find(self, path: str) -> bytearray | None:
        if path in self.files:
            return self.files[path]
        made = self._system_file(path)
        return None if made is None else bytearray(made)

    def _system_file(self, path: str) -> bytes | None:
        """Return a file of /proc or /sys that describes the emulated machine, or None."""
        processor = self.machine.target.processor
        if path in self.own:
            return self.own[path]
        if path == "/proc/self/maps":
            return self._maps()
        if path == "/proc/cpuinfo":
            return b"".join(
                f"processor\t: {number}\ncpu MHz\t\t: {processor.frequency / 1e6:.3f}\n\n".encode()
                for number in range(len(processor))
            )
        frequencies = ("tsc_freq_khz", "cpuinfo_max_freq")
        if path.startswith("/sys/devices/system/cpu/cpu0/") and path.endswith(frequencies):
            return f"{processor.frequency // 1000}\n".encode()
        return None

    def _maps(self) -> bytes:
        lines = []
        for each in self.machine.space.regions:
            flags = each.permissions
            letters = "".join(
                letter if flags & bit else "-" for letter, bit in zip("rwx", (1, 2, 4), strict=True)
            )
            name = {"stack": "[stack]", "heap": "[heap]"}.get(each.name, "")
            if each.name == "segment":
                name = str(self.machine.file.path)
            lines.append(f"{each.start:x}-{each.end:x} {letters}p 00000000 00:00 0 {name}\n")
        return "".join(lines).encode()

    @_call(2)
    @_call(257, skip=1)
    def open(self, at: int, flags: int) -> int:
        """open: return a file number."""
        path = self._text(at)
        data = self._find(path)
        if data is None or (flags & _TRUNCATE and flags & _ACCESS):
            if not flags & _CREATE:
                return -_ENOENT
            data = bytearray()
        if flags & _ACCESS:
            self.files[path] = data
        number = next(each for each in range(3, 1 << 16) if each not in self._open)
        self._open[number] = _File(path, data, position=len(data) if flags & _APPEND else 0)
        return number

    @_call(0)
    def read(self, number: int, at: int, size: int) -> int:
        """read: store bytes of a file."""
        file = self._file(number)
        data = bytes(file.data[file.position : file.position + size]) if number > 2 else b""
        self.machine.store(at, data)
        file.position += len(data)
        return len(data)

    @_call(1)
    def write(self, number: int, at: int, size: int) -> int:
        """write: append to the output, or write into a file."""
        file = self._file(number)
        data = self.machine.space.read(at, size)
        if number <= 2:
            self.machine.output += data
            return size
        end = file.position + size
        file.data += bytes(max(0, end - len(file.data)))
        file.data[file.position : end] = data
        file.position = end
        return size

    @_call(20)
    def writev(self, number: int, at: int, count: int) -> int:
        """writev: write several parts."""
        total = 0
        for each in range(min(count, 1024)):
            base = self.machine.space.read_word(at + 16 * each)
            size = self.machine.space.read_word(at + 16 * each + 8)
            done = self.write(number, base, size) if size else 0
            if done < 0:
                return done
            total += done
        return total

    @_call(8)
    def seek(self, number: int, offset: int, whence: int) -> int:
        """lseek: set the position of a file."""
        file = self._file(number)
        if number <= 2:
            return -_ESPIPE
        offset -= (offset >> 63) << 64
        base = {0: 0, 1: file.position, 2: len(file.data)}.get(whence)
        if base is None or base + offset < 0:
            return -_EINVAL
        file.position = base + offset
        return file.position

    @_call(3)
    def close(self, number: int) -> int:
        """close: forget a file number."""
        return 0 if self._open.pop(number, None) is not None else -_EBADF

    @_call(5)
    def status(self, number: int, at: int) -> int:
        """fstat: store the size and type of an open file."""
        file = self._file(number)
        return self._put_status(at, "stream" if number <= 2 else "regular", len(file.data))

    @_call(4)
    def status_of(self, path_at: int, at: int) -> int:
        """stat: store the size and type of a file by its path."""
        data = self._find(self._text(path_at))
        return -_ENOENT if data is None else self._put_status(at, "regular", len(data))

    @_call(262)
    def status_at(self, number: int, path_at: int, at: int) -> int:
        """newfstatat: store the same by a path or, if that is empty, by a file number."""
        return self.status_of(path_at, at) if self._text(path_at) else self.status(number, at)

    def _put_status(self, at: int, kind: str, size: int) -> int:
        words = struct.pack("<QQQIIIIQqqq", 1, 1, 1, _MODES[kind], 0, 0, 0, 0, size, PAGE, 0)
        self.machine.store(at, words.ljust(144, b"\0"))
        return 0

    @_call(79)
    def folder(self, at: int, size: int) -> int:
        """getcwd: store the path of the current folder, the root."""
        self.machine.store(at, b"/\0"[:size])
        return 2

    @_call(89)
    @_call(267, skip=1)
    def link_of(self, path_at: int, at: int, size: int) -> int:
        """readlink: for /proc/self/exe only."""
        if self._text(path_at) != "/proc/self/exe":
            return -_ENOENT
        name = str(self.machine.file.path).encode()[:size]
        self.machine.store(at, name)
        return len(name)

    # --- memory ---

    @_call(12)
    def set_break(self, at: int) -> int:
        """brk: set the end of the heap."""
        if _BRK_AT <= at <= _BRK_AT + _BRK_BYTES:
            self._break = at
        return self._break

    @_call(9)
    def map(self, at: int, size: int, protection: int, flags: int, number: int) -> int:
        """mmap: map anonymous memory, or a copy of a file."""
        if not size or size > _LARGEST_MAP:
            return -_ENOMEM if size else -_EINVAL
        space = self.machine.space
        nbytes = round_up(size)
        file = None if flags & _ANONYMOUS else self._file(number & 0xFFFFFFFF)
        if flags & _FIXED:
            self.unmap(at, nbytes)
        else:
            at = space.place(_MAPS_AT, nbytes)
        self.machine.map_private("mapping", at, nbytes, protection & 7)
        if file is not None:
            space.write(at, bytes(file.data[:size]))
        return at

    @_call(11)
    def unmap(self, at: int, size: int) -> int:
        """munmap: unmap whole mappings; parts of one stay mapped."""
        space = self.machine.space
        for region in list(space.regions):
            if at <= region.start and region.end <= at + round_up(size):
                space.unmap(region)
        return 0

    @_call(10)
    def protect(self, at: int, size: int, protection: int) -> int:
        """mprotect: change the permissions of pages."""
        space = self.machine.space
        if at % PAGE:
            return -_EINVAL
        end = at + round_up(size)
        for region in space.regions:
            first, last = max(at, region.start), min(end, region.end)
            if first < last:
                space.protect(first, last - first, protection & (READ | WRITE | RUN))
                if protection & RUN:
                    region.permissions |= RUN
        self.machine.decoder.forget()
        return 0

    # --- process and time ---

    @_call(158)
    def arch(self, code: int, value: int) -> int:
        """arch_prctl: set the thread pointer."""
        if code != _SET_FS:
            return -_EINVAL
        self.machine.engine.set("fs_base", value)
        if self.machine.current is not None:
            self.machine.current.thread_pointer = value
        return 0

    @_call(228)
    def time(self, clock: int, at: int) -> int:
        """clock_gettime: store the time of the emulated clock."""
        source = self.machine.timer
        now = source.boot_ns() if clock == 7 else source.monotonic_ns()
        self.machine.store(at, struct.pack("<QQ", now // _NS, now % _NS))
        return 0

    @_call(35)
    @_call(230, skip=2)
    def sleep(self, at: int) -> int:
        """nanosleep: let virtual time pass."""
        seconds, ns = struct.unpack("<QQ", self.machine.space.read(at, 16))
        self.machine.target.clock.advance(seconds * _NS + ns)
        return 0

    @_call(318)
    def draw(self, at: int, size: int) -> int:
        """getrandom: store bytes drawn from the target's seed."""
        self.machine.draw(at, min(size, 4096))
        return min(size, 4096)

    @_call(60)
    @_call(231)
    def leave(self, code: int) -> int:
        """exit, exit_group: end the process."""
        self.exit_code = code & 0xFF
        raise Blocked("exit", code & 0xFF)

    @_call(62, skip=1)
    @_call(200, skip=1)
    @_call(234, skip=2)
    def kill(self, signal: int) -> int:
        """kill, tkill and tgkill: raise the error of a process that signals itself."""
        raise self.machine.error(f"the program ended itself with signal {signal}")

    @_call(97, skip=1)
    @_call(302, skip=3)
    def limits(self, at: int) -> int:
        """prlimit64: store the limit of the stack, which is used for every resource."""
        if at:
            self.machine.store(at, struct.pack("<QQ", 8 << 20, (1 << 64) - 1))
        return 0

    @_call(204, skip=1)
    def affinity(self, size: int, at: int) -> int:
        """sched_getaffinity: store a mask of all CPUs."""
        mask = (1 << len(self.machine.target.processor)) - 1
        nbytes = min(size, 128)
        self.machine.store(at, mask.to_bytes(128, "little")[:nbytes])
        return 8

    @_call(203, skip=1)
    def move(self, size: int, at: int) -> int:
        """sched_setaffinity: move the thread to the first allowed CPU."""
        mask = int.from_bytes(self.machine.space.read(at, min(size, 128)), "little")
        cpus = self.machine.target.processor.cpus
        allowed = [cpu for cpu in cpus if mask >> cpu.number & 1]
        current = self.machine.current
        if not allowed or current is None:
            return -_EINVAL
        if current.cpu not in allowed:
            current.home = allowed[0]
        return 0

    @_call(309)
    def cpu(self, cpu_at: int, node_at: int) -> int:
        """getcpu: store CPU and node."""
        for at, value in ((cpu_at, self.machine.cpu.number), (node_at, self.machine.cpu.node)):
            if at:
                self.machine.store(at, value.to_bytes(4, "little"))
        return 0

    @_call(63)
    def names(self, at: int) -> int:
        """uname: store the system's names."""
        fields = ("Linux", "emulated", "5.10.0", "fx_emulator", "x86_64", "")
        self.machine.store(at, b"".join(each.encode().ljust(65, b"\0") for each in fields))
        return 0


for _value, _numbers in _ANSWERS.items():
    _CALLS |= dict.fromkeys(_numbers, Call("", 0, lambda value=_value: value, bare=True))

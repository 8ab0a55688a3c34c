"""The Linux system calls of a static executable with one thread, including libc's startup.

Files are a dictionary: a file opened for reading must be in it, and written files are in it
afterwards. The thread runs alone: no other processes, no signals. clone fails with EAGAIN, as on a
system that has reached its limit.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from fx_emulator.kernel import Random
from fx_emulator.native.calls import Blocked, RefusedError
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
        self.output = bytearray()
        """Bytes written to standard output and standard error."""
        self.exit_code: int | None = None
        self.unknown: dict[int, int] = {}
        """Count of unsupported system calls, by number."""
        self._open: dict[int, _File] = {
            number: _File("output", self.output) for number in (0, 1, 2)
        }
        self.own: dict[str, bytes] = {}
        """Files of /proc about the process."""
        self._break = _BRK_AT
        machine.map_private("heap", _BRK_AT, _BRK_BYTES, READ | WRITE)
        self._random = Random(machine.target.seed)

    def call(self) -> int:
        """Execute the system call of the current registers. Return its result."""
        engine = self.machine.engine
        number = engine.get("rax")
        arguments = [engine.get(name) for name in ("rdi", "rsi", "rdx", "r10", "r8", "r9")]
        function = _CALLS.get(number)
        if function is None:
            self.unknown[number] = self.unknown.get(number, 0) + 1
            return -_ENOSYS
        try:
            return function(self, *arguments)
        except RefusedError as refused:
            return refused.status
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

    def read(self, number: int, at: int, size: int) -> int:
        """Read."""
        file = self._file(number)
        data = bytes(file.data[file.position : file.position + size]) if number > 2 else b""
        self.machine.store(at, data)
        file.position += len(data)
        return len(data)

    def write(self, number: int, at: int, size: int) -> int:
        """Write."""
        file = self._file(number)
        data = self.machine.space.read(at, size)
        if number <= 2:
            self.output += data
            return size
        end = file.position + size
        file.data += bytes(max(0, end - len(file.data)))
        file.data[file.position : end] = data
        file.position = end
        return size

    def writev(self, number: int, at: int, count: int) -> int:
        """Writev."""
        total = 0
        for each in range(min(count, 1024)):
            base = self.machine.space.read_word(at + 16 * each)
            size = self.machine.space.read_word(at + 16 * each + 8)
            done = self.write(number, base, size) if size else 0
            if done < 0:
                return done
            total += done
        return total

    def seek(self, number: int, offset: int, whence: int) -> int:
        """Lseek."""
        file = self._file(number)
        if number <= 2:
            return -_ESPIPE
        offset -= (offset >> 63) << 64
        base = {0: 0, 1: file.position, 2: len(file.data)}.get(whence)
        if base is None or base + offset < 0:
            return -_EINVAL
        file.position = base + offset
        return file.position

    def close(self, number: int) -> int:
        """Close."""
        return 0 if self._open.pop(number, None) is not None else -_EBADF

    def status(self, number: int, at: int) -> int:
        """Fstat."""
        file = self._file(number)
        return self._put_status(at, "stream" if number <= 2 else "regular", len(file.data))

    def status_of(self, path: str, at: int) -> int:
        """Stat."""
        data = self._find(path)
        return -_ENOENT if data is None else self._put_status(at, "regular", len(data))

    def _put_status(self, at: int, kind: str, size: int) -> int:
        words = struct.pack("<QQQIIIIQqqq", 1, 1, 1, _MODES[kind], 0, 0, 0, 0, size, PAGE, 0)
        self.machine.store(at, words.ljust(144, b"\0"))
        return 0

    def link_of(self, path: str, at: int, size: int) -> int:
        """readlink: for /proc/self/exe only."""
        if path != "/proc/self/exe":
            return -_ENOENT
        name = str(self.machine.file.path).encode()[:size]
        self.machine.store(at, name)
        return len(name)

    # --- memory ---

    def set_break(self, at: int) -> int:
        """Brk."""
        if _BRK_AT <= at <= _BRK_AT + _BRK_BYTES:
            self._break = at
        return self._break

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

    def unmap(self, at: int, size: int) -> int:
        """munmap: unmap whole mappings; parts of one stay mapped."""
        space = self.machine.space
        for region in list(space.regions):
            if at <= region.start and region.end <= at + round_up(size):
                space.unmap(region)
        return 0

    def protect(self, at: int, size: int, protection: int) -> int:
        """Mprotect: change the permissions of pages."""
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

    def arch(self, code: int, value: int) -> int:
        """arch_prctl: set the thread pointer."""
        if code != _SET_FS:
            return -_EINVAL
        self.machine.engine.set("fs_base", value)
        if self.machine.current is not None:
            self.machine.current.thread_pointer = value
        return 0

    def time(self, clock: int, at: int) -> int:
        """clock_gettime: store the time of the emulated clock."""
        source = self.machine.timer
        now = source.boot_ns() if clock == 7 else source.monotonic_ns()
        self.machine.store(at, struct.pack("<QQ", now // _NS, now % _NS))
        return 0

    def sleep(self, at: int) -> int:
        """Nanosleep: let virtual time pass."""
        seconds, ns = struct.unpack("<QQ", self.machine.space.read(at, 16))
        self.machine.target.clock.advance(seconds * _NS + ns)
        return 0

    def draw(self, at: int, size: int) -> int:
        """getrandom: store bytes drawn from the target's seed."""
        words = b"".join(
            self._random.word().to_bytes(8, "little") for _ in range(-(-min(size, 4096) // 8))
        )
        self.machine.store(at, words[: min(size, 4096)])
        return min(size, 4096)

    def leave(self, code: int) -> int:
        """Exit and exit_group: end the process."""
        self.exit_code = code & 0xFF
        raise Blocked("exit", code & 0xFF)

    def kill(self, signal: int) -> int:
        """kill, tkill and tgkill: raise the error of a process that signals itself."""
        raise self.machine.error(f"the program ended itself with signal {signal}")

    def limits(self, at: int) -> int:
        """prlimit64: store the limit of the stack, which is used for every resource."""
        if at:
            self.machine.store(at, struct.pack("<QQ", 8 << 20, (1 << 64) - 1))
        return 0

    def affinity(self, size: int, at: int) -> int:
        """sched_getaffinity: store a mask of all CPUs."""
        mask = (1 << len(self.machine.target.processor)) - 1
        nbytes = min(size, 128)
        self.machine.store(at, mask.to_bytes(128, "little")[:nbytes])
        return 8

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

    def cpu(self, cpu_at: int, node_at: int) -> int:
        """Getcpu: store CPU and node."""
        for at, value in ((cpu_at, self.machine.cpu.number), (node_at, self.machine.cpu.node)):
            if at:
                self.machine.store(at, value.to_bytes(4, "little"))
        return 0

    def names(self, at: int) -> int:
        """Uname: store the system's names."""
        fields = ("Linux", "emulated", "5.10.0", "fx_emulator", "x86_64", "")
        self.machine.store(at, b"".join(each.encode().ljust(65, b"\0") for each in fields))
        return 0


def _answer(value: int) -> Callable[..., int]:
    """Return a system call with a constant result."""
    return lambda _linux, *_: value


_CALLS: dict[int, Callable[..., int]] = {
    0: lambda s, fd, at, size, *_: s.read(fd, at, size),
    1: lambda s, fd, at, size, *_: s.write(fd, at, size),
    2: lambda s, path, flags, *_: s.open(path, flags),
    3: lambda s, fd, *_: s.close(fd),
    4: lambda s, path, at, *_: s.status_of(s._text(path), at),  # noqa: SLF001
    5: lambda s, fd, at, *_: s.status(fd, at),
    8: lambda s, fd, offset, whence, *_: s.seek(fd, offset, whence),
    9: lambda s, at, size, prot, flags, fd, *_: s.map(at, size, prot, flags, fd),
    10: lambda s, at, size, prot, *_: s.protect(at, size, prot),
    11: lambda s, at, size, *_: s.unmap(at, size),
    12: lambda s, at, *_: s.set_break(at),
    13: _answer(0),  # rt_sigaction
    14: _answer(0),  # rt_sigprocmask
    16: _answer(-_ENOTTY),  # ioctl
    20: lambda s, fd, at, count, *_: s.writev(fd, at, count),
    24: _answer(0),  # sched_yield
    28: _answer(0),  # madvise
    35: lambda s, at, *_: s.sleep(at),
    39: _answer(_PROCESS_ID),  # getpid
    56: _answer(-_EAGAIN),  # clone
    60: lambda s, code, *_: s.leave(code),
    62: lambda s, _pid, signal, *_: s.kill(signal),
    63: lambda s, at, *_: s.names(at),
    72: _answer(0),  # fcntl
    79: lambda s, at, size, *_: (s.machine.store(at, b"/\0"[:size]), 2)[1],  # getcwd
    89: lambda s, path, at, size, *_: s.link_of(s._text(path), at, size),  # noqa: SLF001
    97: lambda s, _what, at, *_: s.limits(at),
    99: _answer(-_ENOSYS),  # sysinfo
    102: _answer(0),  # getuid
    104: _answer(0),  # getgid
    107: _answer(0),  # geteuid
    108: _answer(0),  # getegid
    110: _answer(1),  # getppid
    131: _answer(0),  # sigaltstack
    157: _answer(0),  # prctl
    158: lambda s, code, value, *_: s.arch(code, value),
    186: _answer(_PROCESS_ID),  # gettid
    200: lambda s, _tid, signal, *_: s.kill(signal),
    202: _answer(0),  # futex: there is no other thread
    203: lambda s, _pid, size, at, *_: s.move(size, at),
    204: lambda s, _pid, size, at, *_: s.affinity(size, at),
    218: _answer(_PROCESS_ID),  # set_tid_address
    228: lambda s, clock, at, *_: s.time(clock, at),
    230: lambda s, _clock, _flags, at, *_: s.sleep(at),
    231: lambda s, code, *_: s.leave(code),
    234: lambda s, _pid, _tid, signal, *_: s.kill(signal),
    257: lambda s, _folder, path, flags, *_: s.open(path, flags),
    262: lambda s, fd, path, at, *_: (
        s.status_of(s._text(path), at) if s._text(path) else s.status(fd, at)  # noqa: SLF001
    ),
    267: lambda s, _folder, path, at, size, *_: s.link_of(s._text(path), at, size),  # noqa: SLF001
    273: _answer(0),  # set_robust_list
    302: lambda s, _pid, _what, _new, at, *_: s.limits(at),
    309: lambda s, cpu, node, *_: s.cpu(cpu, node),
    318: lambda s, at, size, *_: s.draw(at, size),
    334: _answer(-_ENOSYS),  # rseq
    435: _answer(-_EAGAIN),  # clone3
    439: _answer(-_ENOENT),  # faccessat2
}

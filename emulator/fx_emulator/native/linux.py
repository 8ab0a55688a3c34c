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

# Error numbers.
_ENOENT = 2
_EBADF = 9
_EAGAIN = 11
_ENOMEM = 12
_EFAULT = 14
_EINVAL = 22
_ENOTTY = 25
_ESPIPE = 29
_ENOSYS = 38
_BRK_AT = 0x5000_0000
_BRK_BYTES = 64 << 20
_MAPS_AT = 0x6000_0000_0000
# Flags of mmap().
_FIXED = 0x10
_ANONYMOUS = 0x20
_LARGEST_MAP = 1 << 32
# Flags of open(); _ACCESS are the bits of files that are opened for writing, too.
_ACCESS = 3
_CREATE = 0o100
_TRUNCATE = 0o1000
_APPEND = 0o2000
_LAST_STREAM = 2
"""Files 0 to 2 are the terminal."""
_MOST_FILES = 1 << 16
_MOST_PARTS = 1024
"""Most parts that writev() takes."""
_STATUS_BYTES = 144
_MASK_BYTES = 128
"""Bytes of a mask of CPUs."""
_MOST_RANDOM_BYTES = 4096
_STACK_LIMIT = 8 << 20
_NO_LIMIT = (1 << 64) - 1
_BOOT_CLOCK = 7
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

    def _text(self, address: int) -> str:
        text: str = self.machine.space.read_string(address).decode(errors="replace")
        return text

    def _file(self, file_number: int) -> _File:
        """Return an open file. Raises RefusedError for an invalid number."""
        file = self._open.get(file_number)
        if file is None:
            raise RefusedError(-_EBADF)
        return file

    def _find(self, path: str) -> bytearray | None:
        if path in self.files:
            return self.files[path]
        data = self._system_file(path)
        return None if data is None else bytearray(data)

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
        """Return /proc/self/maps."""
        names = {"stack": "[stack]", "heap": "[heap]", "segment": str(self.machine.file.path)}
        lines = []
        for region in self.machine.space.regions:
            permission_letters = ""
            for letter, bit in (("r", READ), ("w", WRITE), ("x", RUN)):
                permission_letters += letter if region.permissions & bit else "-"
            mapping_name = names.get(region.name, "")
            addresses = f"{region.start:x}-{region.end:x}"
            lines.append(f"{addresses} {permission_letters}p 00000000 00:00 0 {mapping_name}\n")
        return "".join(lines).encode()

    @_call(2)
    @_call(257, skip=1)
    def open(self, path_at: int, flags: int) -> int:
        """open: return a file number."""
        path = self._text(path_at)
        file_data = self._find(path)
        if file_data is None or (flags & _TRUNCATE and flags & _ACCESS):
            if not flags & _CREATE:
                return -_ENOENT
            file_data = bytearray()
        if flags & _ACCESS:
            self.files[path] = file_data
        file = _File(path, file_data)
        if flags & _APPEND:
            file.position = len(file_data)
        file_number = next(n for n in range(_LAST_STREAM + 1, _MOST_FILES) if n not in self._open)
        self._open[file_number] = file
        return file_number

    @_call(0)
    def read(self, file_number: int, buffer: int, size: int) -> int:
        """read: store bytes of a file."""
        file = self._file(file_number)
        if file_number <= _LAST_STREAM:
            return 0
        data = bytes(file.data[file.position : file.position + size])
        self.machine.store(buffer, data)
        file.position += len(data)
        return len(data)

    @_call(1)
    def write(self, file_number: int, buffer: int, size: int) -> int:
        """write: append to the output, or write into a file."""
        file = self._file(file_number)
        data = self.machine.space.read(buffer, size)
        if file_number <= _LAST_STREAM:
            self.machine.output += data
            return size
        write_end = file.position + size
        file.data += bytes(max(0, write_end - len(file.data)))  # beyond the end there are zeros
        file.data[file.position : write_end] = data
        file.position = write_end
        return size

    @_call(20)
    def writev(self, file_number: int, parts: int, count: int) -> int:
        """writev: write several parts, whose addresses and sizes are at ``parts``."""
        word = self.machine.space.read_word
        total = 0
        for part_number in range(min(count, _MOST_PARTS)):
            part = parts + 16 * part_number
            address = word(part)
            size = word(part + 8)
            if size:
                total += self.write(file_number, address, size)
        return total

    @_call(8)
    def seek(self, file_number: int, offset: int, whence: int) -> int:
        """lseek: set the position of a file."""
        file = self._file(file_number)
        if file_number <= _LAST_STREAM:
            return -_ESPIPE
        if offset >> 63:
            offset -= 1 << 64
        origin = {0: 0, 1: file.position, 2: len(file.data)}.get(whence)
        if origin is None or origin + offset < 0:
            return -_EINVAL
        file.position = origin + offset
        return file.position

    @_call(3)
    def close(self, file_number: int) -> int:
        """close: forget a file number."""
        if file_number not in self._open:
            return -_EBADF
        del self._open[file_number]
        return 0

    @_call(5)
    def status(self, file_number: int, out: int) -> int:
        """fstat: store the size and type of an open file."""
        file = self._file(file_number)
        kind = "stream" if file_number <= _LAST_STREAM else "regular"
        return self._put_status(out, kind, len(file.data))

    @_call(4)
    def status_of(self, path_at: int, out: int) -> int:
        """stat: store the size and type of a file by its path."""
        data = self._find(self._text(path_at))
        if data is None:
            return -_ENOENT
        return self._put_status(out, "regular", len(data))

    @_call(262)
    def status_at(self, file_number: int, path_at: int, out: int) -> int:
        """newfstatat: store the same by a path or, if that is empty, by a file number."""
        if self._text(path_at):
            return self.status_of(path_at, out)
        return self.status(file_number, out)

    def _put_status(self, out: int, kind: str, size: int) -> int:
        """Store a ``struct stat`` of a file on device 1, with inode 1, of user 0."""
        words = struct.pack("<QQQIIIIQqqq", 1, 1, 1, _MODES[kind], 0, 0, 0, 0, size, PAGE, 0)
        self.machine.store(out, words.ljust(_STATUS_BYTES, b"\0"))
        return 0

    @_call(79)
    def folder(self, out: int, size: int) -> int:
        """getcwd: store the path of the current folder, the root."""
        self.machine.store(out, b"/\0"[:size])
        return 2

    @_call(89)
    @_call(267, skip=1)
    def link_of(self, path_at: int, out: int, size: int) -> int:
        """readlink: for /proc/self/exe only."""
        if self._text(path_at) != "/proc/self/exe":
            return -_ENOENT
        name = str(self.machine.file.path).encode()[:size]
        self.machine.store(out, name)
        return len(name)

    # --- memory ---

    @_call(12)
    def set_break(self, end: int) -> int:
        """brk: set the end of the heap."""
        if _BRK_AT <= end <= _BRK_AT + _BRK_BYTES:
            self._break = end
        return self._break

    @_call(9)
    def map(self, address: int, size: int, protection: int, flags: int, file_number: int) -> int:
        """mmap: map anonymous memory, or a copy of a file."""
        if not size:
            return -_EINVAL
        if size > _LARGEST_MAP:
            return -_ENOMEM
        space = self.machine.space
        mapped_bytes = round_up(size)
        file = None if flags & _ANONYMOUS else self._file(file_number & 0xFFFFFFFF)
        if flags & _FIXED:
            self.unmap(address, mapped_bytes)
        else:
            address = space.place(_MAPS_AT, mapped_bytes)
        self.machine.map_private(
            "mapping", address, mapped_bytes, protection & (READ | WRITE | RUN)
        )
        if file is not None:
            space.write(address, bytes(file.data[:size]))
        return address

    @_call(11)
    def unmap(self, address: int, size: int) -> int:
        """munmap: unmap whole mappings; parts of one stay mapped."""
        space = self.machine.space
        end = address + round_up(size)
        for region in list(space.regions):
            if address <= region.start and region.end <= end:
                space.unmap(region)
        return 0

    @_call(10)
    def protect(self, address: int, size: int, protection: int) -> int:
        """mprotect: change the permissions of pages."""
        space = self.machine.space
        if address % PAGE:
            return -_EINVAL
        protected_end = address + round_up(size)
        for region in space.regions:
            first_address = max(address, region.start)
            end_address = min(protected_end, region.end)
            if first_address < end_address:
                space.protect(
                    first_address, end_address - first_address, protection & (READ | WRITE | RUN)
                )
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
    def time(self, clock: int, out: int) -> int:
        """clock_gettime: store the time of the emulated clock."""
        timer = self.machine.timer
        now_ns = timer.boot_ns() if clock == _BOOT_CLOCK else timer.monotonic_ns()
        self.machine.store(out, struct.pack("<QQ", now_ns // _NS, now_ns % _NS))
        return 0

    @_call(35)
    @_call(230, skip=2)
    def sleep(self, time_at: int) -> int:
        """nanosleep: let virtual time pass."""
        seconds, ns = struct.unpack("<QQ", self.machine.space.read(time_at, 16))
        self.machine.target.clock.advance(seconds * _NS + ns)
        return 0

    @_call(318)
    def draw(self, buffer: int, size: int) -> int:
        """getrandom: store bytes drawn from the target's seed."""
        size = min(size, _MOST_RANDOM_BYTES)
        self.machine.draw(buffer, size)
        return size

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
    def limits(self, out: int) -> int:
        """prlimit64: store the limit of the stack, which is used for every resource."""
        if out:
            self.machine.store(out, struct.pack("<QQ", _STACK_LIMIT, _NO_LIMIT))
        return 0

    @_call(204, skip=1)
    def affinity(self, size: int, out: int) -> int:
        """sched_getaffinity: store a mask of all CPUs."""
        mask = (1 << len(self.machine.target.processor)) - 1
        self.machine.store(out, mask.to_bytes(_MASK_BYTES, "little")[:size])
        return 8

    @_call(203, skip=1)
    def move(self, size: int, mask_at: int) -> int:
        """sched_setaffinity: move the thread to the first allowed CPU."""
        mask_bytes = self.machine.space.read(mask_at, min(size, _MASK_BYTES))
        mask = int.from_bytes(mask_bytes, "little")
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
        cpu = self.machine.cpu
        for out, value in ((cpu_at, cpu.number), (node_at, cpu.node)):
            if out:
                self.machine.store(out, value.to_bytes(4, "little"))
        return 0

    @_call(63)
    def names(self, out: int) -> int:
        """uname: store the system's names."""
        names = ("Linux", "emulated", "5.10.0", "fx_emulator", "x86_64", "")
        fields = [name.encode().ljust(65, b"\0") for name in names]
        self.machine.store(out, b"".join(fields))
        return 0


for _value, _numbers in _ANSWERS.items():
    _CALLS |= dict.fromkeys(_numbers, Call("", 0, lambda value=_value: value, bare=True))

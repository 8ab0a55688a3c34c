"""The emulated x86-64 CPU: Unicorn through ctypes, with minimal overhead per callback.

The binding of the ``unicorn`` package wraps each callback in Python frames and has no hook for
RDTSC. Here the same library is called directly and the interpreter lock is kept, so that a callback
for a store costs about a microsecond.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import mmap
import weakref
from collections.abc import Callable
from typing import Any

from fx_emulator.native.errors import MissingPackageError, NativeError

_ARCH_X86 = 4
_MODE_64 = 8
# Kinds of hooks.
_HOOK_INTR = 1
_HOOK_INSN = 2
_HOOK_CODE = 4
_HOOK_INVALID_MEMORY = 1008
_HOOK_READ = 1 << 10
_HOOK_WRITE = 1 << 11
_HOOK_INVALID_INSTRUCTION = 1 << 14
_CTL_FLUSH_CODE = 10 | 1 << 30
"""uc_ctl code of UC_CTL_TB_FLUSH: a write without arguments."""

_CTL_CODE_BYTES = 13 | 1 << 26 | 1 << 30
"""uc_ctl code of UC_CTL_TCG_BUFFER_SIZE: a write with one argument."""

_CODE_BYTES = 32 << 20
"""Memory for translated code; when it is full the engine translates again."""
_ENGINE_BYTES = 8 << 20
"""Further memory of an engine, at most."""

_VOID_P = ctypes.c_void_p
_U64 = ctypes.c_uint64
_INT = ctypes.c_int

GENERAL = (
    *("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "rip"),
    *(f"r{number}" for number in range(8, 16)),
)
REGISTERS = (*GENERAL, "eflags", "fs_base", "gs_base")

_MORE = (
    *(f"xmm{number}" for number in range(16)),
    *(f"fp{number}" for number in range(8)),
    *("fpsw", "fpcw", "fptag", "mxcsr"),
)
"""Further registers of a thread, of up to 16 bytes."""

# Types of the callbacks; PYFUNCTYPE, because the interpreter lock is never released.
_ON_ACCESS = ctypes.PYFUNCTYPE(None, _VOID_P, _INT, _U64, _INT, ctypes.c_int64, _VOID_P)
_ON_FAULT = ctypes.PYFUNCTYPE(ctypes.c_bool, _VOID_P, _INT, _U64, _INT, ctypes.c_int64, _VOID_P)
_ON_CODE = ctypes.PYFUNCTYPE(None, _VOID_P, _U64, ctypes.c_uint32, _VOID_P)
_ON_INSTRUCTION = ctypes.PYFUNCTYPE(_INT, _VOID_P, _VOID_P)
_ON_INVALID = ctypes.PYFUNCTYPE(ctypes.c_bool, _VOID_P, _VOID_P)
_ON_INTERRUPT = ctypes.PYFUNCTYPE(None, _VOID_P, ctypes.c_uint32, _VOID_P)

FAULTS = {
    19: "read of unmapped memory",
    20: "store into unmapped memory",
    21: "jump into unmapped memory",
    22: "store into read-only memory",
    23: "read of memory without read permission",
    24: "jump into memory that is not executable",
}


def _load() -> tuple[Any, Any]:
    try:
        from unicorn import x86_const
        from unicorn.unicorn_py3.unicorn import uclib
    except ImportError:
        raise MissingPackageError("unicorn") from None
    library = ctypes.PyDLL(uclib._name)  # noqa: SLF001 (the path of the library)
    size = ctypes.c_size_t
    for name, *types in (
        ("uc_open", _INT, _INT, _VOID_P),
        ("uc_close", _VOID_P),
        ("uc_emu_start", _VOID_P, _U64, _U64, _U64, size),
        ("uc_emu_stop", _VOID_P),
        ("uc_mem_map_ptr", _VOID_P, _U64, _U64, ctypes.c_uint32, _VOID_P),
        ("uc_mem_unmap", _VOID_P, _U64, _U64),
        ("uc_mem_protect", _VOID_P, _U64, _U64, ctypes.c_uint32),
        ("uc_reg_read", _VOID_P, _INT, _VOID_P),
        ("uc_reg_write", _VOID_P, _INT, _VOID_P),
        ("uc_hook_del", _VOID_P, size),
        ("uc_context_alloc", _VOID_P, _VOID_P),
        ("uc_context_save", _VOID_P, _VOID_P),
        ("uc_context_restore", _VOID_P, _VOID_P),
        ("uc_context_free", _VOID_P),
        ("uc_context_reg_read_batch", _VOID_P, _VOID_P, _VOID_P, _INT),
    ):
        getattr(library, name).argtypes = types
    library.uc_strerror.restype = ctypes.c_char_p
    return library, x86_const


def _reserve() -> None:
    """Raise NativeError if there is no memory for an engine, which would end the process."""
    if _has_memory():
        return
    gc.collect()  # it closes targets that are no longer referenced
    if not _has_memory():
        size = (_CODE_BYTES + _ENGINE_BYTES) >> 20
        raise NativeError(
            f"no memory for another CPU emulator, which takes {size} MiB: close() targets "
            "that are not needed, or raise the limit of address space (ulimit -v)"
        )


def _has_memory() -> bool:
    """Return whether there is memory for an engine."""
    try:
        mmap.mmap(-1, _CODE_BYTES + _ENGINE_BYTES, flags=mmap.MAP_PRIVATE).close()
    except OSError:
        return False
    return True


_MARK = 0x5A17_C0DE_1234
"""A number of instructions that is found in the engine's memory by its value."""


@functools.cache
def _counter_offset() -> int:
    """Return the offset of the number of executed instructions in the engine's own structure.

    The library keeps it beside the limit, and has no function that returns it. Raises NativeError
    if a version of the library keeps it elsewhere.
    """
    engine = Engine(calibrated=False)
    size_of_block = ctypes.CDLL(None).malloc_usable_size
    size_of_block.argtypes = [_VOID_P]
    size_of_block.restype = ctypes.c_size_t
    code_page = mmap.mmap(-1, mmap.PAGESIZE)
    code_page[:3] = b"\x90\x90\xf4"  # nop, nop, hlt
    anchor = ctypes.c_char.from_buffer(code_page)
    engine.map_pointer(0, mmap.PAGESIZE, 7, ctypes.addressof(anchor))
    # At the second instruction the count is 2, and the limit behind it is the mark.
    counter_bytes = (2).to_bytes(8, "little") + _MARK.to_bytes(8, "little")
    offsets: list[int] = []

    def look(_address: int) -> None:
        engine_bytes = ctypes.string_at(engine.handle, size_of_block(engine.handle))
        offsets.append(engine_bytes.find(counter_bytes))

    engine.on_code(look, 1, 1)
    engine.run(0, 2, _MARK)
    engine.close()
    if offsets[0] < 0:
        raise NativeError(
            "the CPU emulator does not tell how many instructions it has executed; install "
            "unicorn 2.1.4"
        )
    return offsets[0]


class Context:
    """Saved registers of a thread that is not running."""

    def __init__(self, library: Any, handle: Any) -> None:
        self._library = library
        self.pointer = _VOID_P()
        if library.uc_context_alloc(handle, ctypes.byref(self.pointer)):
            raise NativeError("cannot allocate memory for the registers of a thread")

    def __del__(self) -> None:
        if self.pointer:
            self._library.uc_context_free(self.pointer)
            self.pointer = _VOID_P()


class _RegisterBatch:
    """Memory into which the library copies the values of registers, 16 bytes for each."""

    def __init__(self, ids: list[int]) -> None:
        count = len(ids)
        self.ids = (_INT * count)(*ids)
        self.values = ctypes.create_string_buffer(16 * count)
        start = ctypes.addressof(self.values)
        self.pointers = (_VOID_P * count)(*range(start, start + 16 * count, 16))


class Engine:
    """One CPU, with registers by name, and memory and hooks by guest address.

    An exception of a callback ends the run, and ``run`` raises it. Raises MissingPackageError if
    the package ``unicorn`` is missing.
    """

    def __init__(self, *, calibrated: bool = True) -> None:
        self._library, constants = _load()
        self._ids = {name: getattr(constants, f"UC_X86_REG_{name.upper()}") for name in REGISTERS}
        self._instructions = {
            name: getattr(constants, f"UC_X86_INS_{name.upper()}")
            for name in ("rdtsc", "rdtscp", "cpuid", "syscall")
        }
        self._all_registers = _RegisterBatch(
            [getattr(constants, f"UC_X86_REG_{name.upper()}") for name in (*REGISTERS, *_MORE)]
        )
        self._handle = _VOID_P()
        _reserve()
        self._check(self._library.uc_open(_ARCH_X86, _MODE_64, ctypes.byref(self._handle)), "open")
        self._free = weakref.finalize(self, self._library.uc_close, self.handle)
        self._free.atexit = False
        size = ctypes.c_uint32(_CODE_BYTES)
        self._library.uc_ctl(self._handle, ctypes.c_uint32(_CTL_CODE_BYTES), size)
        self._hooks: dict[int, Any] = {}
        self._word = _U64()
        self._word_pointer = ctypes.byref(self._word)
        self._read = self._library.uc_reg_read
        self._write = self._library.uc_reg_write
        self.get("rip")  # the engine takes its memory now
        self.error: BaseException | None = None
        """The exception that a callback raised, or None."""
        self._counter = _U64()
        if calibrated:
            self._counter = _U64.from_address(self.handle + _counter_offset())
        self._limit = 0
        """Instructions after which the current run ends."""
        self._stopped_before = False
        """Whether the run was stopped before the instruction that was counted last."""

    @property
    def handle(self) -> int:
        """Address of the engine's structure."""
        return self._handle.value or 0

    @property
    def executed(self) -> int:
        """Instructions executed in the current or last run; in a hook, the current one included."""
        executed = min(self._counter.value, self._limit)
        if self._stopped_before:
            executed -= 1
        return executed

    def close(self) -> None:
        """Free the CPU. May be called twice."""
        if self._handle:
            self._handle = _VOID_P()
            self._counter = _U64()
            self._free()
            self._hooks.clear()

    def _check(self, status: int, action: str) -> None:
        if status:
            text = self._library.uc_strerror(status).decode()
            raise NativeError(f"the CPU emulator cannot {action}: {text}")

    # --- registers ---

    def get(self, name: str) -> int:
        """Return a register."""
        self._read(self._handle, self._ids[name], self._word_pointer)
        return self._word.value

    def set(self, name: str, value: int) -> None:
        """Set a register, modulo 2^64."""
        self._word.value = value & 0xFFFFFFFFFFFFFFFF
        self._write(self._handle, self._ids[name], self._word_pointer)

    def reader(self, name: str) -> Callable[[], int]:
        """Return a fast function that reads one register."""
        read = self._read
        handle = self._handle
        register_id = self._ids[name]
        value_buffer = _U64()
        value_pointer = ctypes.byref(value_buffer)

        def value() -> int:
            read(handle, register_id, value_pointer)
            return value_buffer.value

        return value

    def registers(self) -> dict[str, int]:
        """Return all registers by name."""
        return {name: self.get(name) for name in REGISTERS}

    def context(self) -> Context:
        """Return storage for the registers of a thread."""
        return Context(self._library, self._handle)

    def saved(self, context: Context) -> bytes:
        """Return all saved registers of a thread, floating point and vectors included."""
        batch = self._all_registers
        self._library.uc_context_reg_read_batch(
            context.pointer, batch.ids, batch.pointers, len(batch.ids)
        )
        return batch.values.raw

    def save(self, context: Context) -> None:
        """Save the registers."""
        self._library.uc_context_save(self._handle, context.pointer)

    def restore(self, context: Context) -> None:
        """Restore saved registers."""
        self._library.uc_context_restore(self._handle, context.pointer)

    # --- memory ---

    def map_pointer(self, start: int, size: int, permissions: int, pointer: int) -> None:
        """Map host memory at a guest address, whole pages."""
        status = self._library.uc_mem_map_ptr(self._handle, start, size, permissions, pointer)
        self._check(status, f"map {size} bytes at {start:#x}")

    def unmap(self, start: int, size: int) -> None:
        """Unmap whole pages."""
        self._check(self._library.uc_mem_unmap(self._handle, start, size), f"unmap {start:#x}")

    def protect(self, start: int, size: int, permissions: int) -> None:
        """Change permissions of whole pages."""
        status = self._library.uc_mem_protect(self._handle, start, size, permissions)
        self._check(status, f"protect {start:#x}")

    def forget_code(self) -> None:
        """Discard translated code, after a change of code or of hooks on single instructions."""
        self._library.uc_ctl(self._handle, ctypes.c_uint32(_CTL_FLUSH_CODE))

    # --- hooks ---

    def _hook(self, kind: int, callback: Any, begin: int, end: int, *more: Any) -> int:
        hook_number = ctypes.c_size_t()
        status = self._library.uc_hook_add(
            self._handle,
            ctypes.byref(hook_number),
            ctypes.c_int(kind),
            callback,
            _VOID_P(None),
            _U64(begin),
            _U64(end),
            *more,
        )
        self._check(status, "set a hook")
        self._hooks[hook_number.value] = callback
        return hook_number.value

    def unhook(self, number: int) -> None:
        """Remove a hook."""
        self._library.uc_hook_del(self._handle, number)
        self._hooks.pop(number, None)

    def on_access(
        self,
        function: Callable[[int, int, int, int], None],
        begin: int,
        end: int,
        *,
        reads: bool = False,
    ) -> int:
        """Call ``function(kind, address, size, value)`` before each store to a range.

        With ``reads``, also before each load. ``end`` is the last address. The value is 0 for a
        load, signed for a store.
        """

        def call(_uc: Any, kind: int, address: int, size: int, value: int, _data: Any) -> None:
            try:
                function(kind, address, size, value)
            except BaseException as error:  # noqa: BLE001 (it must not reach the C code)
                self.fail(error)

        kinds = _HOOK_WRITE
        if reads:
            kinds |= _HOOK_READ
        return self._hook(kinds, _ON_ACCESS(call), begin, end)

    def on_code(self, function: Callable[[int], None], begin: int, end: int) -> int:
        """Call ``function(address)`` before each instruction; ``end`` is the last address."""

        def call(_uc: Any, address: int, _size: int, _data: Any) -> None:
            try:
                function(address)
            except BaseException as error:  # noqa: BLE001
                self.fail(error)

        return self._hook(_HOOK_CODE, _ON_CODE(call), begin, end)

    def _guarded(
        self, function: Callable[..., Any], first: int = 0, end: int = 0, *, default: Any = None
    ) -> Callable[..., Any]:
        """Return a callback that calls a function with arguments ``first`` to ``end`` - 1.

        It returns ``default`` if the function returns nothing or raises an exception.
        """

        def call(*arguments: Any) -> Any:
            try:
                result = function(*arguments[first:end])
            except BaseException as error:  # noqa: BLE001 (it must not reach the C code)
                self.fail(error)
                return default
            return default if result is None else result

        return call

    def on_instruction(self, name: str, function: Callable[[], None]) -> int:
        """Call ``function`` instead of each RDTSC, RDTSCP, CPUID or SYSCALL."""
        callback = _ON_INSTRUCTION(self._guarded(function, default=1))
        return self._hook(_HOOK_INSN, callback, 1, 0, _INT(self._instructions[name]))

    def on_invalid(self, function: Callable[[], bool]) -> int:
        """Call ``function`` at an invalid instruction; it returns whether it emulated it."""
        callback = _ON_INVALID(self._guarded(function, default=False))
        return self._hook(_HOOK_INVALID_INSTRUCTION, callback, 1, 0)

    def on_fault(self, function: Callable[[int, int, int], None]) -> int:
        """Call ``function(kind, address, size)`` at an access that no mapping permits."""
        callback = _ON_FAULT(self._guarded(function, 1, 4, default=False))
        return self._hook(_HOOK_INVALID_MEMORY, callback, 1, 0)

    def on_interrupt(self, function: Callable[[int], None]) -> int:
        """Call ``function(number)`` at an interrupt or exception."""
        return self._hook(_HOOK_INTR, _ON_INTERRUPT(self._guarded(function, 1, 2)), 1, 0)

    # --- running ---

    def fail(self, error: BaseException) -> None:
        """End the run with an exception, which ``run`` raises."""
        if self.error is None:
            self.error = error
        self.stop()

    def stop(self) -> None:
        """End the run before the next instruction; called from a callback."""
        self._library.uc_emu_stop(self._handle)

    def stop_before(self) -> None:
        """End the run before the instruction for which a callback of ``on_code`` is called."""
        self._stopped_before = True
        self.stop()

    def run(self, begin: int, until: int, count: int) -> int:
        """Run at most ``count`` instructions. Return the engine's status, 0 for success.

        Always counted, because code translated without counting would not stop.
        """
        self._limit = count
        self._stopped_before = False
        status: int = self._library.uc_emu_start(self._handle, begin, until, 0, count)
        if self.error is not None:
            error = self.error
            self.error = None
            raise error
        return status

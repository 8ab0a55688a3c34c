"""The Zircon calls of telemetry writers, with their documented results and errors."""

from __future__ import annotations

import itertools
from typing import Any

from fx_emulator.errors import MemoryAccessError, RightsError, VmoError
from fx_emulator.native.calls import Blocked, RefusedError, Table
from fx_emulator.socket import DatagramSocket
from fx_emulator.vmo import DEFAULT_RIGHTS, PAGE, Rights, Vmo

OK = 0
NOT_SUPPORTED = -2
NO_MEMORY = -4
INVALID_ARGS = -10
BAD_HANDLE = -11
WRONG_TYPE = -12
OUT_OF_RANGE = -14
BUFFER_TOO_SMALL = -15
SHOULD_WAIT = -22
PEER_CLOSED = -24
UNAVAILABLE = -28
ACCESS_DENIED = -30

_RESIZABLE = 1 << 1
_SAME_RIGHTS = 1 << 31
_INFO_HANDLE_BASIC = 2
_INFO_BYTES = 32
_PROPERTY_NAME = 3
_PROPERTY_CONTENT_SIZE = 17
_NAME_BYTES = 32
# Operations of zx_vmo_op_range().
_COMMIT = 1
_DECOMMIT = 2
_CACHE_OPERATIONS = frozenset({6, 7, 8, 9})
_ZERO = 10
_TYPES = {"process": 1, "thread": 2, "vmo": 3, "socket": 14, "vmar": 18}
_MASK = (1 << 64) - 1
_LARGEST_VMO = 1 << 30
_LARGEST_SIZE = 1 << 62
"""Larger sizes are invalid, whatever the memory."""


class Handles:
    """The handle table of a native program."""

    def __init__(self) -> None:
        self._numbers = itertools.count(0x1003, 4)
        self._objects: dict[int, Any] = {}
        self._own: dict[tuple[str, int], int] = {}
        """Handles of processes, threads and address spaces, by kind and koid."""
        self.vmos = itertools.count(1)
        """Numbers of the VMOs that the program creates."""

    def add(self, subject: Any) -> int:
        """Add an object. Return its handle number."""
        number = next(self._numbers)
        self._objects[number] = subject
        return number

    def own(self, kind: str, koid: int) -> int:
        """Return the constant handle number of the process, a thread, or the address space."""
        if (kind, koid) not in self._own:
            self._own[kind, koid] = self.add((kind, koid))
        return self._own[kind, koid]

    def find(self, number: int) -> Any:
        """Return the object of a handle number, or None."""
        return self._objects.get(number & 0xFFFFFFFF)

    def close(self, number: int) -> bool:
        """Close a handle. Return False for an unknown number."""
        return self._objects.pop(number & 0xFFFFFFFF, None) is not None


def _object(machine: Any, handle: int) -> Any:
    """Return the object of a handle. Raises RefusedError for an unknown one."""
    kernel_object = machine.handles.find(handle)
    if kernel_object is None:
        raise RefusedError(BAD_HANDLE)
    return kernel_object


def _vmo(machine: Any, handle: int, rights: Rights = Rights.NONE) -> Vmo:
    """Return the VMO of a handle with the given rights. Raises RefusedError otherwise."""
    vmo = _object(machine, handle)
    if not isinstance(vmo, Vmo):
        raise RefusedError(WRONG_TYPE)
    if rights & ~vmo.rights:
        raise RefusedError(ACCESS_DENIED)
    return vmo


def _out(machine: Any, address: int, value: int, size: int = 8) -> None:
    """Store a result, unless the caller wants none."""
    if address:
        machine.store(address, (value & (1 << 8 * size) - 1).to_bytes(size, "little"))


# --- time --------------------------------------------------------------------------------------


def nanosleep(machine: Any, deadline: int) -> int:
    """Sleep until a monotonic time in ns."""
    ns: int = _signed(deadline) - machine.timer.monotonic_ns()
    if ns <= 0:
        raise Blocked("yield")
    raise Blocked("sleep", ns=ns)


def _signed(value: int) -> int:
    if value >> 63:
        return value - (1 << 64)
    return value


# --- VMOs --------------------------------------------------------------------------------------


def vmo_create(machine: Any, size: int, options: int, out: int) -> int:
    """Create a VMO; ZX_VMO_RESIZABLE is the only supported option."""
    options &= 0xFFFFFFFF
    if options & ~_RESIZABLE:
        return INVALID_ARGS
    if size > _LARGEST_SIZE:
        return OUT_OF_RANGE
    if size > _LARGEST_VMO:
        return NO_MEMORY
    name = f"native vmo {next(machine.handles.vmos)}"
    vmo = machine.target.vmo(name, size, resizable=bool(options & _RESIZABLE))
    _out(machine, out, machine.handles.add(vmo), 4)
    return OK


def vmo_read(machine: Any, handle: int, buffer: int, offset: int, size: int) -> int:
    """Copy bytes from a VMO."""
    vmo = _vmo(machine, handle, Rights.READ)
    if offset + size > vmo.size:
        return OUT_OF_RANGE
    machine.store(buffer, vmo.read(offset, size))
    return OK


def vmo_write(machine: Any, handle: int, buffer: int, offset: int, size: int) -> int:
    """Copy bytes into a VMO, in ascending stores."""
    vmo = _vmo(machine, handle, Rights.WRITE)
    if offset + size > vmo.size:
        return OUT_OF_RANGE
    if size:
        start = machine.map_device(vmo).region.start
        machine.store(start + offset, machine.space.read(buffer, size))
    return OK


def vmo_set_size(machine: Any, handle: int, size: int) -> int:
    """Change the size of a resizable VMO."""
    vmo = _vmo(machine, handle, Rights.WRITE)
    if not vmo.resizable:
        return UNAVAILABLE
    is_mapped = machine.find_device(vmo) is not None
    try:
        vmo.set_size(size)
    except RightsError:
        return ACCESS_DENIED
    except (VmoError, MemoryAccessError):
        return OUT_OF_RANGE
    if is_mapped and vmo.size:
        machine.map_device(vmo)  # again: its memory was replaced
    return OK


def vmo_op_range(machine: Any, handle: int, operation: int, offset: int, size: int) -> int:
    """Commit, decommit or zero pages; cache operations succeed and do nothing."""
    operation &= 0xFFFFFFFF
    vmo = _vmo(machine, handle)
    if offset + size > vmo.size:
        return OUT_OF_RANGE
    if operation in _CACHE_OPERATIONS:
        return OK
    if operation > _ZERO:
        return INVALID_ARGS
    if operation not in {_COMMIT, _DECOMMIT, _ZERO}:
        return NOT_SUPPORTED
    if Rights.WRITE & ~vmo.rights:
        return ACCESS_DENIED
    if operation == _DECOMMIT and (offset | size) % PAGE:
        return INVALID_ARGS
    if operation == _COMMIT:
        # The first store into a page commits it.
        for page in range(offset & -PAGE, offset + size, PAGE):
            vmo.store_u64(page, vmo.load_u64(page))
    elif size:
        start = machine.map_device(vmo).region.start
        machine.store(start + offset, bytes(size))
    return OK


def vmar_map(
    machine: Any,
    vmar: int,
    _options: int,
    _vmar_offset: int,
    handle: int,
    offset: int,
    size: int,
    out: int,
) -> int:
    """Map a VMO at an address that the target chooses."""
    kind, _, _ = _kind(_object(machine, vmar))
    if kind != "vmar":
        return WRONG_TYPE
    vmo = _vmo(machine, handle, Rights.MAP | Rights.READ)
    if offset % PAGE or not size:
        return INVALID_ARGS
    if offset + size > -(-vmo.size // PAGE) * PAGE:
        return OUT_OF_RANGE
    _out(machine, out, machine.map_device(vmo).region.start + offset)
    return OK


def vmar_unmap(machine: Any, vmar: int, address: int, size: int) -> int:
    """Unmap a whole mapping; a part of one stays mapped."""
    _object(machine, vmar)
    for key, device in list(machine.devices.items()):
        if device.region.start == address and size >= device.region.limit:
            device.unmap()
            del machine.devices[key]
            return OK
    if machine.space.find(address) is None:
        return INVALID_ARGS
    return OK


# --- objects -----------------------------------------------------------------------------------


def _kind(kernel_object: Any) -> tuple[str, int, int]:
    """Return type, koid and rights of a handle's object; the koid of a socket is unknown, 0."""
    if isinstance(kernel_object, Vmo):
        return "vmo", kernel_object.koid, int(kernel_object.rights)
    if isinstance(kernel_object, tuple):
        kind, koid = kernel_object
        return kind, koid, int(DEFAULT_RIGHTS)
    return "socket", 0, int(DEFAULT_RIGHTS)


def object_get_info(
    machine: Any, handle: int, topic: int, buffer: int, size: int, actual: int, available: int
) -> int:
    """Store ZX_INFO_HANDLE_BASIC: koid, rights, type."""
    kernel_object = _object(machine, handle)
    if topic & 0xFFFFFFFF != _INFO_HANDLE_BASIC:
        return NOT_SUPPORTED
    if size < _INFO_BYTES:
        return BUFFER_TOO_SMALL
    kind, koid, rights = _kind(kernel_object)
    if kind == "socket":
        for device in machine.target.devices.values():
            if device.device is kernel_object:
                koid = device.koid
                break
    related_koid = machine.current.process_koid if kind == "thread" else 0
    words = (koid, rights | _TYPES[kind] << 32, related_koid, 0)
    machine.store(buffer, b"".join(word.to_bytes(8, "little") for word in words))
    _out(machine, actual, 1)
    _out(machine, available, 1)
    return OK


def object_get_property(machine: Any, handle: int, name: int, value: int, size: int) -> int:
    """Store ZX_PROP_NAME or ZX_PROP_VMO_CONTENT_SIZE of a VMO."""
    vmo = _vmo(machine, handle, Rights.GET_PROPERTY)
    name &= 0xFFFFFFFF
    if name == _PROPERTY_NAME:
        if size < _NAME_BYTES:
            return BUFFER_TOO_SMALL
        machine.store(value, vmo.name.encode().ljust(_NAME_BYTES, b"\0"))
        return OK
    if name == _PROPERTY_CONTENT_SIZE:
        _out(machine, value, vmo.content_size)
        return OK
    return NOT_SUPPORTED


def object_set_property(machine: Any, handle: int, name: int, value: int, size: int) -> int:
    """Set ZX_PROP_NAME or ZX_PROP_VMO_CONTENT_SIZE of a VMO."""
    vmo = _vmo(machine, handle, Rights.SET_PROPERTY)
    name &= 0xFFFFFFFF
    if name == _PROPERTY_NAME:
        vmo_name = machine.space.read(value, min(size, _NAME_BYTES)).split(b"\0")[0]
        vmo.set_name(vmo_name.decode(errors="replace"))
        return OK
    if name == _PROPERTY_CONTENT_SIZE:
        content = machine.space.read_word(value)
        if content > vmo.size:
            return OUT_OF_RANGE
        vmo.set_content_size(content)
        return OK
    return NOT_SUPPORTED


def handle_close(machine: Any, handle: int) -> int:
    """Close a handle; 0 is ignored."""
    if not handle & 0xFFFFFFFF:
        return OK
    if not machine.handles.close(handle):
        return BAD_HANDLE
    return OK


def handle_duplicate(machine: Any, handle: int, rights: int, out: int) -> int:
    """Create another handle, with the same rights or fewer."""
    kernel_object = _object(machine, handle)
    rights &= 0xFFFFFFFF
    if isinstance(kernel_object, Vmo):
        if Rights.DUPLICATE & ~kernel_object.rights:
            return ACCESS_DENIED
        try:
            kernel_object = kernel_object.duplicate(
                None if rights == _SAME_RIGHTS else Rights(rights)
            )
        except RightsError:
            return INVALID_ARGS
    _out(machine, out, machine.handles.add(kernel_object), 4)
    return OK


def socket_write(
    machine: Any, handle: int, options: int, buffer: int, size: int, actual: int
) -> int:
    """Send one whole datagram."""
    socket = _object(machine, handle)
    if not isinstance(socket, DatagramSocket):
        return WRONG_TYPE
    if options & 0xFFFFFFFF or (not buffer and size):
        return INVALID_ARGS
    if socket.closed:
        return PEER_CLOSED
    if size > socket.capacity:
        return OUT_OF_RANGE
    if not socket.send(machine.space.read(buffer, size)):
        return SHOULD_WAIT
    _out(machine, actual, size)
    return OK


# --- the program -------------------------------------------------------------------------------


def leave(_machine: Any, code: int) -> None:
    """End the calling thread."""
    raise Blocked("exit", code & _MASK)


def cprng_draw(machine: Any, buffer: int, size: int) -> None:
    """Store bytes drawn from the target's seed."""
    machine.draw(buffer, size)


ZIRCON: Table = {
    "zx_clock_get_monotonic": lambda m: m.timer.monotonic_ns(),
    "zx_clock_get_boot": lambda m: m.timer.boot_ns(),
    "zx_ticks_get": lambda m: m.timer.ticks(),
    "zx_ticks_get_boot": lambda m: m.timer.boot_ticks(),
    "zx_ticks_per_second": lambda m: m.target.clock.ticks_per_second,
    "zx_deadline_after": lambda m, ns: m.timer.monotonic_ns() + _signed(ns),
    "zx_nanosleep": nanosleep,
    "zx_vmo_create": vmo_create,
    "zx_vmo_read": vmo_read,
    "zx_vmo_write": vmo_write,
    "zx_vmo_get_size": lambda m, number, out: _out(m, out, _vmo(m, number).size),
    "zx_vmo_set_size": vmo_set_size,
    "zx_vmo_op_range": vmo_op_range,
    "zx_vmar_root_self": lambda m: m.handles.own("vmar", m.current.process_koid),
    "zx_vmar_map": vmar_map,
    "zx_vmar_unmap": vmar_unmap,
    "zx_object_get_info": object_get_info,
    "zx_object_get_property": object_get_property,
    "zx_object_set_property": object_set_property,
    "zx_handle_close": handle_close,
    "zx_handle_duplicate": handle_duplicate,
    "zx_socket_write": socket_write,
    "zx_thread_self": lambda m: m.handles.own("thread", m.current.koid),
    "zx_process_self": lambda m: m.handles.own("process", m.current.process_koid),
    "zx_thread_exit": lambda m: leave(m, 0),
    "zx_process_exit": leave,
    "zx_system_get_num_cpus": lambda m: len(m.target.processor),
    "zx_cprng_draw": cprng_draw,
}

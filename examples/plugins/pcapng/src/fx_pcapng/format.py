"""Format: the blocks of pcapng (draft-ietf-opsawg-pcapng), declared.

A file is one section or more. A section begins with a block that says its byte order; interfaces
are numbered within it, and each has a resolution of time.
"""

from __future__ import annotations

from fxframework import wire

section = wire.register(-1, name="section")
interfaces = wire.register(name="interfaces")
"""Interfaces of the section so far."""
earlier = wire.register(name="earlier")
"""Interfaces of earlier sections."""


class Block(wire.Record, align=4):
    """A block: its type, its size, and its size again."""

    _type = wire.kind(wire.u32())
    _size = wire.size(wire.u32())
    _again = wire.u32(equals=wire.SIZE, tail=True)


# --- Options --------------------------------------------------------------------------------------


class Option(wire.Part, pad=4):
    """An option of any block."""

    code: int = wire.kind(wire.u16())
    _length = wire.size(wire.u16(), plus=4)


class Comment(Option, kind=1):
    """A comment for people."""

    text: str = wire.text()


class OtherOption(Option, kind=wire.OTHER):
    """Any other option; 0 ends the options."""

    data: bytes = wire.octets()


class InterfaceOption(wire.Part, pad=4):
    """An option of an interface."""

    code: int = wire.kind(wire.u16())
    _length = wire.size(wire.u16(), plus=4)


class InterfaceComment(InterfaceOption, kind=1, name="comment"):
    """A comment for people."""

    text: str = wire.text()


class Name(InterfaceOption, kind=2):
    """The device, such as eth0."""

    text: str = wire.text()


class Description(InterfaceOption, kind=3):
    """What the device is."""

    text: str = wire.text()


class Resolution(InterfaceOption, kind=9):
    """The unit of times: 10 to the power of -exponent seconds, or 2 to that power."""

    exponent: int = wire.bits(0, 6, of=1)
    binary: bool = wire.flag(7)


class System(InterfaceOption, kind=12):
    """The operating system."""

    text: str = wire.text()


class Offset(InterfaceOption, kind=14):
    """Seconds to add to all times."""

    seconds: int = wire.i64(unit="s")


class OtherInterfaceOption(InterfaceOption, kind=wire.OTHER, name="other_option"):
    """Any other option; 0 ends the options."""

    data: bytes = wire.octets()


# --- Blocks ---------------------------------------------------------------------------------------


class Section(
    Block,
    kind=0x0A0D0D0A,
    sets={section: section + 1, earlier: earlier + interfaces, interfaces: 0},
):
    """A section begins (Section Header Block)."""

    order: str = wire.byte_order(0x1A2B3C4D)
    major: int = wire.u16()
    minor: int = wire.u16()
    length: int = wire.i64(unit="bytes", doc="bytes of the section; -1 unknown")
    options: tuple[Option, ...] = wire.listed(Option)


class Interface(Block, kind=1, sets={interfaces: interfaces + 1}):
    """What packets were captured on (Interface Description Block)."""

    link_type: int = wire.u16(doc="link type: 1 Ethernet, 101 raw IP, 113 Linux cooked")
    _reserved = wire.u16()
    snap_length: int = wire.u32(unit="bytes", doc="most bytes captured of a packet; 0 no limit")
    options: tuple[InterfaceOption, ...] = wire.listed(InterfaceOption)


class OldPacket(Block, kind=2):
    """A packet, as it was written once (Packet Block)."""

    interface: int = wire.u16(below=interfaces)
    drops: int = wire.u16()
    time_high: int = wire.u32()
    time_low: int = wire.u32()
    _captured = wire.u32()
    original: int = wire.u32(unit="bytes")
    data: bytes = wire.octets(_captured, align=4)
    options: tuple[Option, ...] = wire.listed(Option)


class SimplePacket(Block, kind=3):
    """A packet of the first interface, without a time (Simple Packet Block); data has padding."""

    original: int = wire.u32(unit="bytes")
    data: bytes = wire.octets()


class Names(Block, kind=4):
    """Names of addresses (Name Resolution Block), then options."""

    records: tuple[OtherOption, ...] = wire.listed(Option)


class Statistics(Block, kind=5):
    """What an interface saw and lost (Interface Statistics Block)."""

    interface: int = wire.u32(below=interfaces)
    time_high: int = wire.u32()
    time_low: int = wire.u32()
    options: tuple[Option, ...] = wire.listed(Option)


class Packet(Block, kind=6):
    """A packet (Enhanced Packet Block)."""

    interface: int = wire.u32(below=interfaces)
    time_high: int = wire.u32()
    time_low: int = wire.u32()
    _captured = wire.u32()
    original: int = wire.u32(unit="bytes", doc="bytes of the packet on the wire")
    data: bytes = wire.octets(_captured, align=4, doc="what was captured of the packet")
    options: tuple[Option, ...] = wire.listed(Option)


class Journal(Block, kind=9):
    """An entry of the systemd journal, as exported, with padding (systemd Journal Export Block)."""

    entry: bytes = wire.octets()


class Secrets(Block, kind=10):
    """Keys with which packets can be decrypted (Decryption Secrets Block)."""

    secrets_type: int = wire.u32(doc="type of secrets: 0x544c534b TLS key log")
    _length = wire.u32()
    data: bytes = wire.octets(_length, align=4)
    options: tuple[Option, ...] = wire.listed(Option)


class Custom(Block, kind=0x00000BAD):
    """Anything, by an enterprise (Custom Block)."""

    enterprise: int = wire.u32()
    data: bytes = wire.octets()


class CustomNotCopied(Block, kind=0x40000BAD):
    """Anything that a tool must not copy (Custom Block)."""

    enterprise: int = wire.u32()
    data: bytes = wire.octets()


# --- Tables ---------------------------------------------------------------------------------------


def packets(record: type[wire.Record]) -> wire.Rows:
    """Return the row that a packet makes; ``capture.py`` makes ``ts`` of ``ticks``."""
    return wire.rows(
        "instants",
        record,
        ticks=wire.field("time_high") << 32 | wire.field("time_low"),
        name=wire.always("packet"),
        scope=2,
        pcapng_interface=earlier + wire.field("interface"),
        pcapng_length="original",
        pcapng_data="data",
    )


FORMAT = wire.Format(
    "pcapng",
    "Packet capture (pcapng)",
    Block,
    codes="PCNG",
    tables=[
        packets(Packet),
        packets(OldPacket),
        wire.rows(
            "pcapng_interfaces",
            Interface,
            doc="an interface that packets were captured on; `pcapng_interface` is its row",
            pcapng_section=section,
            pcapng_link_type="link_type",
            pcapng_snap_length="snap_length",
        ),
    ],
)

"""Profile: the file of XRay's profiling mode, declared.

compiler-rt's lib/xray writes it (xray_profiling.cpp, xray_profile_collector.cpp): a header, then a
block for each thread. A block lists paths of calls: the ids of functions from the innermost one to
the outermost, a zero, how often the path was taken, and how long. Nothing is aligned to more than 4
bytes, paths repeat, and the frequency of the ticks is not in the file.
"""

from __future__ import annotations

from fx_xray import rules
from fxframework import wire
from fxframework.errors import Rule, Severity

CUT_PATH = Rule(
    "XPRF0201",
    Severity.DATA_LOSS,
    "a path of calls without its figures",
    "compiler-rt lib/xray, xray_profile_collector.cpp",
    "The ids of a path end with 0, and the calls and ticks of the path follow.",
    detail="{value} bytes at the end of a block",
    ours="The path is in no table; its records are kept.",
)


class Header(wire.Record):
    """The file begins: version, time and process."""

    _magic = wire.u64(equals=0x7872617970726F66)  # the letters "xrayprof"
    _version = wire.u64(equals=0x20180424)
    time: int = wire.u64(default=0, unit="ns", doc="when it was written, since the Unix epoch")
    process: int = wire.u64(default=0, doc="process id")


class Item(wire.Part):
    """A word of a path."""

    function_id: int = wire.kind(wire.u32())


class Total(Item, kind=0, name="total"):
    """A path ends: the figures of the ids before it, since the total before."""

    calls: int = wire.u64(doc="how often the path was taken")
    ticks: int = wire.u64(doc="time in its innermost function and what that called")


class Function(Item, kind=wire.OTHER, name="function"):
    """A function of a path; the one behind it called it."""


class Block(wire.Record):
    """The paths of a thread, or some of them."""

    _nbytes = wire.size(wire.u32())
    number: int = wire.u32(doc="of the file's blocks")
    thread: int = wire.u64(doc="thread id")
    items: tuple[Item, ...] = wire.listed(Item)

    @classmethod
    def fits(cls, data: memoryview, at: int) -> bool:
        """Return whether the size at a byte is one that a block can have."""
        nbytes = cls.layout.place("_nbytes").get(data, at)
        return nbytes >= cls.layout.least and nbytes % 4 == 0


FORMAT = wire.Format(
    "xray-profile",
    "LLVM XRay profile",
    Block,
    codes="XPRF",
    header=Header,
    rules=[CUT_PATH, rules.NO_FUNCTION_NAMES, rules.NAMES_MISSING, rules.INVALID_MAP_ENTRY],
    tables=[
        wire.rows(
            "xray_blocks",
            Block,
            doc="a block of a profile: paths of one thread",
            xray_number="number",
            xray_tid="thread",
            xray_bytes="_nbytes",
        )
    ],
)

"""Where Perfetto and we differ: every known difference, once.

``docs/formats/trace.md`` lists them from here (``docs/generate.py``), and ``test_divergences.py``
shows each of them on a trace of its own, so that a difference that goes away is noticed.
"""

from __future__ import annotations

import json
from pathlib import Path

import attrs

__all__ = ["DIVERGENCES", "Divergence"]

SAYS = json.loads(Path(__file__).with_name("perfetto_says.json").read_text(encoding="utf-8"))
"""What Perfetto v52 says, by the name of the difference; checked by ``test_divergences.py``."""


@attrs.frozen(kw_only=True)
class Divergence:
    """One difference."""

    name: str
    perfetto: str
    """What Perfetto does."""
    ours: str
    """What we do."""
    reason: str
    """Why we do it otherwise."""
    normalised: str
    """How the comparison of whole captures deals with it."""

    @property
    def says(self) -> dict[str, int] | str:
        """What Perfetto says of the trace that shows it: its counters, or its error."""
        said: dict[str, int] | str = SAYS[self.name]
        return said


OUT = "kept out of the generated captures"

_TABLE = (
    # --- slices ---
    Divergence(
        name="overlap",
        perfetto="drops a complete event that partly overlaps an earlier one of its thread",
        ours="both are kept; the later one is nested in the earlier one",
        reason="nothing that was recorded is left out (FXT0305)",
        normalised=OUT,
    ),
    Divergence(
        name="same-start",
        perfetto="drops a complete event that begins together with a shorter one written before it",
        ours="the shorter one is nested in the longer one",
        reason="writers that write an event when it is over write the inner one first",
        normalised=OUT,
    ),
    Divergence(
        name="complete-backwards",
        perfetto="drops a complete event that ends before it begins",
        ours="kept with dur 0",
        reason="nothing that was recorded is left out (FXT0301)",
        normalised=OUT,
    ),
    Divergence(
        name="begin-in-complete",
        perfetto="ends what was begun inside a complete event, and not ended there, with it",
        ours="its own end event ends it, later; without one it has dur -1",
        reason="the length is what was recorded",
        normalised=OUT,
    ),
    Divergence(
        name="instants",
        perfetto="keeps an instant as a slice of no length, and ignores its scope",
        ours="instants have a table of their own, with the scope",
        reason="a moment is not a span of time",
        normalised="our instants are compared as slices of no length, without depth",
    ),
    # --- asynchronous operations and flows ---
    Divergence(
        name="async-processes",
        perfetto="nests operations of one name and id in two processes in each other",
        ours="ids are those of one process",
        reason="the format's document says so; newer versions of Perfetto do so too",
        normalised=OUT,
    ),
    Divergence(
        name="async-category",
        perfetto="an asynchronous end must have the category of its begin",
        ours="name, process and id must match",
        reason="the category does not belong to the identity of an operation",
        normalised=OUT,
    ),
    Divergence(
        name="async-stray-end",
        perfetto="after an end that nothing began, an end of another id may end an operation",
        ours="an end with an id that was not begun ends nothing (FXT0306)",
        reason="a bug of that version",
        normalised=OUT,
    ),
    Divergence(
        name="flow-topmost",
        perfetto="binds a flow to what came last on the thread, instants and slices that have "
        "ended included",
        ours="binds it to the innermost slice that is open at that time, its end included",
        reason="the format's document says: the enclosing duration",
        normalised=OUT,
    ),
    Divergence(
        name="flow-outside",
        perfetto="drops a flow event before which no slice began on its thread",
        ours="kept, in `slice` -1",
        reason="nothing that was recorded is left out",
        normalised=OUT,
    ),
    Divergence(
        name="flow-twice",
        perfetto="drops the begin of a flow that has begun and not ended",
        ours="both begins are in `flows`",
        reason="nothing that was recorded is left out",
        normalised=OUT,
    ),
    Divergence(
        name="flow-args",
        perfetto="drops the arguments of flow events",
        ours="they are in `args`",
        reason="nothing that was recorded is left out",
        normalised="flows are compared without arguments",
    ),
    Divergence(
        name="too-deep",
        perfetto="does not nest slices below 512 others of their thread, and does not end them",
        ours="nested as deep as `-o max_depth=N` says, and ended at any depth (FXT0308)",
        reason="an end event ends what it was written for",
        normalised=OUT,
    ),
    # --- arguments ---
    Divergence(
        name="arg-repeated",
        perfetto="of several arguments of one name, and of begin and end, the last one is kept",
        ours="all are kept",
        reason="nothing that was recorded is left out",
        normalised="of ours only the last one is compared",
    ),
    Divergence(
        name="arg-null-blob",
        perfetto="shows a null as the string `null`, a blob as the string `unknown`",
        ours="null and blob are types; a blob has its bytes",
        reason="nothing that was recorded is left out",
        normalised="ours are compared by those words",
    ),
    Divergence(
        name="arg-unsigned",
        perfetto="shows 64-bit unsigned integers, koids and pointers as signed",
        ours="`uint` has the value, `int` the same bits signed",
        reason="the format has unsigned integers",
        normalised="the column `int` is compared",
    ),
    # --- references and providers ---
    Divergence(
        name="unregistered-string",
        perfetto="drops a record with a string reference that was never registered",
        ours="kept; the string is `<str#N>` (FXT0104)",
        reason="all else in the record is sound",
        normalised=OUT,
    ),
    Divergence(
        name="unregistered-argument",
        perfetto="takes an argument of a thread object whose name or text was never registered for "
        "one without it",
        ours="kept; the string is `<str#N>` (FXT0104)",
        reason="all else in the record is sound",
        normalised=OUT,
    ),
    Divergence(
        name="unregistered-thread",
        perfetto="takes process 0, thread 0 for a thread reference that was never registered",
        ours="a thread of its own, `<thr#N>` (FXT0105)",
        reason="several unknown threads are not one",
        normalised=OUT,
    ),
    Divergence(
        name="default-provider",
        perfetto="looks up references in the tables of the current provider alone",
        ours="what it lacks is looked up in those of provider 0 (FXT0106)",
        reason="ocaml-trace registers before it introduces its provider",
        normalised=OUT,
    ),
    Divergence(
        name="unknown-section",
        perfetto="drops everything in the section of a provider that was never introduced",
        ours="the provider is registered with an empty name (FXT0206)",
        reason="the records are sound",
        normalised=OUT,
    ),
    Divergence(
        name="koid-32",
        perfetto="cuts koids of processes and threads to 32 bits",
        ours="64 bits",
        reason="artificial koids have bit 63 set, and must not run together",
        normalised=OUT,
    ),
    Divergence(
        name="thread-of-switch",
        perfetto="takes the threads of context switches and wakeups, which have no process in the "
        "record, for threads of process 0",
        ours="a thread id is the thread that the rest of the capture knows by it",
        reason="koids are unique on a device",
        normalised="the threads of `sched` are compared by their tid",
    ),
    Divergence(
        name="thread-without-process",
        perfetto="gives the name of a thread object without a process argument to a thread of "
        "process 0",
        ours="to the thread of that koid, whatever its process",
        reason="koids are unique on a device",
        normalised=OUT,
    ),
    Divergence(
        name="process-type",
        perfetto="drops a thread object whose process is not a koid",
        ours="kept; a process may be of any type of integer",
        reason="the number is the koid",
        normalised=OUT,
    ),
    # --- scheduling ---
    Divergence(
        name="far-cpu",
        perfetto="crashes at a context switch or wakeup on CPU 4096 or above, and shows nothing",
        ours="the CPU as it is; `.pftrace` leaves out switches from CPU 1024 on, and counts them",
        reason="a damaged record must not cost the rest",
        normalised=OUT,
    ),
    Divergence(
        name="priority-not-given",
        perfetto="priority 0 where a context switch has no weight",
        ours="-1",
        reason="0 is a priority",
        normalised="our -1 is compared as 0",
    ),
    Divergence(
        name="weight-type",
        perfetto="drops a context switch whose weight is not an int32",
        ours="kept, priority -1; the argument is in `args`",
        reason="nothing that was recorded is left out",
        normalised=OUT,
    ),
    # --- time ---
    Divergence(
        name="base-tick",
        perfetto="ignores the base tick of an initialization record of four words",
        ours="subtracts it (FXT0204)",
        reason="Jane Street's extension says so; the raw time is in `ticks`",
        normalised=OUT,
    ),
    Divergence(
        name="rate-zero",
        perfetto="drops every event after an initialization record of zero ticks per second",
        ours="the previous rate stays (FXT0203)",
        reason="trace2json does so, and the records are sound",
        normalised=OUT,
    ),
    Divergence(
        name="ticks-rounding",
        perfetto="falls short by up to a nanosecond per 2^32 ticks where the rate does not divide "
        "evenly",
        ours="floor of the exact value",
        reason="exact arithmetic costs nothing",
        normalised=OUT,
    ),
    Divergence(
        name="time-overflow",
        perfetto="drops an event whose time does not fit 63 bits of nanoseconds",
        ours="kept with the greatest time (FXT0208)",
        reason="nothing that was recorded is left out",
        normalised=OUT,
    ),
    # --- framing ---
    Divergence(
        name="size-zero",
        perfetto="refuses the file at a header word of zero",
        ours="zero words are padding (FXT0006), another size of zero is damage (FXT0001)",
        reason="a gap in a circular buffer must not cost the rest",
        normalised=OUT,
    ),
    Divergence(
        name="large-size",
        perfetto="takes 12 bits for the size of a large record, and loses its way after one of "
        "more than 4,095 words",
        ours="32 bits",
        reason="the format's document says so",
        normalised=OUT,
    ),
    Divergence(
        name="no-magic",
        perfetto="does not know a file that does not begin with the magic number",
        ours="read with `-f trace`, or by its name (FXT0201)",
        reason="a part of a trace is still a trace",
        normalised=OUT,
    ),
    Divergence(
        name="big-endian",
        perfetto="does not know big-endian files",
        ours="the magic number tells",
        reason="the format's document says: the byte order of the writer",
        normalised=OUT,
    ),
    # --- what has no place there ---
    Divergence(
        name="other-records",
        perfetto="has no place for logs, userspace objects, profiler records, large blobs, blobs "
        "that are not its own, and kernel objects other than processes and threads",
        ours="tables `logs`, `blobs`, `trace_objects`; profiler records are in the records",
        reason="nothing that was recorded is left out",
        normalised="only what both have is compared",
    ),
    Divergence(
        name="bad-packet",
        perfetto="takes the bytes of a blob of type 3 for packets of its own, and refuses the file "
        "if they are not",
        ours="a blob is bytes, in `blobs`",
        reason="a damaged record must not cost the rest",
        normalised=OUT,
    ),
    Divergence(
        name="made-up-threads",
        perfetto="makes up a main thread for each process, and an idle thread",
        ours="threads are those that the capture mentions",
        reason="a reader does not invent",
        normalised="only named threads are compared",
    ),
)
DIVERGENCES = {divergence.name: divergence for divergence in _TABLE}

"""The quirks of Perfetto: how its importer of traces loses or changes data."""

from __future__ import annotations

from typing import Final

from fxframework.model.prediction import Effect, Quirk

__all__ = ["QUIRKS", "quirks"]

R, D, M = Effect.REFUSES, Effect.DROPS, Effect.MISREADS


def _quirk(key: str, effect: Effect, counter: str | None, title: str) -> Quirk:
    return Quirk(key=key, effect=effect, counter=counter, title=title)


QUIRKS: Final[tuple[Quirk, ...]] = (
    _quirk("no-magic", R, None, "a file that does not begin with the little-endian magic number "
           "record is not known as a trace"),
    Quirk(key="size-zero", effect=R, message="Unexpected record of size 0",
          title="a record of size 0 (12 bits) ends the import with an error"),
    _quirk("packet", R, None, "a packet of Perfetto's own inside blobs that is not protobuf ends "
           "the import with an error"),
    _quirk("cpu", R, None, "a context switch or wakeup on CPU 4096 or above crashes the importer"),
    _quirk("short", D, "fuchsia_record_read_error", "a record that is too short for its fields "
           "is left out"),
    _quirk("provider", D, "fuchsia_invalid_event", "records in the section of a provider that was "
           "not introduced are left out"),
    _quirk("string-ref", D, "fuchsia_invalid_string_ref", "a record with a string reference that "
           "was not registered is left out"),
    _quirk("thread-name-ref", M, "fuchsia_invalid_string_ref", "an argument of a thread object "
           "with a string reference that was not registered has no name or value"),
    _quirk("time", D, "fuchsia_timestamp_overflow", "an event whose time does not fit 63 bits of "
           "nanoseconds is left out; so is every event after a tick rate of 0"),
    _quirk("backwards", D, "fuchsia_timestamp_overflow", "a complete event that ends before it "
           "begins, or beyond 63 bits of nanoseconds, is left out"),
    _quirk("not-a-number", D, "fuchsia_non_numeric_counters", "a counter's argument that is not a "
           "number is left out"),
    _quirk("arg-type", D, "fuchsia_invalid_event_arg_type", "a weight that is not an int32, or a "
           "thread object's process that is not a koid, costs the record"),
    _quirk("overlap", D, "slice_drop_overlapping_complete_event", "a complete event that partly "
           "overlaps an earlier slice of its thread is left out"),
    _quirk("flow-outside", D, "flow_no_enclosing_slice", "a flow event is left out where no slice "
           "came before it on its thread"),
    _quirk("flow-twice", D, "flow_duplicate_id", "a flow that begins again before it ends is left "
           "out"),
    _quirk("flow-step-stray", D, "flow_step_without_start", "a step of a flow that did not begin "
           "is left out"),
    _quirk("flow-end-stray", D, "flow_end_without_start", "the end of a flow that did not begin is "
           "left out"),
    _quirk("truncated", M, "misplaced_end_event", "what is still open when a slice around it has "
           "ended is cut to the end of that slice"),
    _quirk("cut", D, None, "a last record that is cut off is left out"),
    _quirk("odd-bytes", D, None, "bytes at the end that are not a whole word are left out"),
    _quirk("large", M, None, "the size of a large record of more than 4,095 words is cut to 12 "
           "bits: what is inside it is taken for records"),
    _quirk("record-type", D, None, "log, userspace object, profiler and large records, and those "
           "of unknown types, are left out"),
    _quirk("object-type", D, None, "kernel objects other than processes and threads are left out"),
    _quirk("blob-type", D, None, "blobs that are not Perfetto's own are left out"),
    _quirk("event-type", D, None, "events and scheduling records of unknown types are left out"),
    _quirk("buffer-full", D, None, "the note that a provider's buffer was full is left out"),
    _quirk("index-zero", D, None, "a string or thread record with index 0 is ignored"),
    _quirk("end-stray", D, None, "an end without a begin is left out, with its arguments"),
    _quirk("flow-args", D, None, "the arguments of a flow event are left out"),
    _quirk("scope", M, None, "an instant of a process, or of all, is shown on its thread"),
    _quirk("too-deep", M, None, "a slice below 512 others is not nested, and is not ended"),
    _quirk("arg-value", M, None, "arguments that are blobs, or of unknown types, become the string "
           "`unknown`"),
    _quirk("signed", M, None, "unsigned integers and koids from 2^63 on become negative"),
    _quirk("repeated", M, None, "of several arguments of one name, the last one is kept"),
    _quirk("thread-ref", M, None, "a thread reference that was not registered becomes process 0, "
           "thread 0"),
    _quirk("koid", M, None, "koids of processes and threads are cut to 32 bits"),
    _quirk("base-tick", M, None, "the base tick of an initialization record is not subtracted"),
    _quirk("packets", Effect.UNPREDICTED, None, "Perfetto's own packets inside blobs are imported "
           "as such; what is lost of what is in them is not predicted"),
)  # fmt: skip

(
    NO_MAGIC, SIZE_ZERO, PACKET, CPU, SHORT, PROVIDER, STRING_REF, THREAD_NAME_REF, TIME,
    BACKWARDS, NOT_A_NUMBER, ARG_TYPE, OVERLAP, FLOW_OUTSIDE, FLOW_TWICE, FLOW_STEP_STRAY,
    FLOW_END_STRAY, TRUNCATED, CUT, ODD_BYTES, LARGE, RECORD_TYPE, OBJECT_TYPE, BLOB_TYPE,
    EVENT_TYPE, BUFFER_FULL, INDEX_ZERO, END_STRAY, FLOW_ARGS, SCOPE, TOO_DEEP, ARG_VALUE,
    SIGNED, REPEATED, THREAD_REF, KOID, BASE_TICK, PACKETS,
) = range(38)  # fmt: skip
"""Places of the quirks in the table."""


def quirks() -> tuple[Quirk, ...]:
    """Return the table."""
    return QUIRKS

"""Contract of writers, the part on refusals: records, and edited fields of records."""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import attrs

from fxframework.errors import FxError, Severity, WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.kit.salvage import UNSOUND
from fxframework.registry import RecordWriter
from fxframework.rules import RULES as FRAMEWORK_RULES
from fxframework.testing.contracts.checks import MISSING, check_same, short, shown_of, some
from fxframework.testing.contracts.writing import Json, Stream, Writing, all_written

Path = tuple[Any, ...]
"""Keys and indexes that lead to a value of JSON."""

NO_RECORDS: Sequence[Json] = (
    {}, {"no": "record"}, {"record": None}, {"record": 7}, {"record": ""}, {"record": []},
    {"record": {}}, {"record": "no-such-record"},
)  # fmt: skip
"""JSON objects that are not records of any format."""
VALUES: Sequence[Any] = (
    None, True, 0, 1, 3, 255, -1, 1 << 64, 1 << 70, 0.5, "", "text", "\ud800", "x" * 70_000,
    [], [[]], {}, {"a": 1},
)  # fmt: skip
"""JSON values to put into every field; most are invalid in most fields."""
EDGES: Mapping[type, Sequence[Any]] = {
    bool: (2, "true"),
    int: (-1 << 63, (1 << 64) - 1, "1"),
    float: (1e300, "NaN", "-Infinity", "0.5"),
    str: ("a\0",),
}
"""By the type of a value: what else is at the edges of its fields, or nearly of its type."""
HEADS = (0, 4, 16)
"""Records at the beginning of a file of which all are before an edited record, beside the first of
each kind, until it is read back as it is."""
ADDED = "no_such_field"
"""A field that no record has; it may be refused or ignored."""


class Refusing(Writing):
    """Contract of what a writer refuses: why, and that nothing is left of it."""

    def test_refused_records_say_why(self) -> None:
        """The records of refused() raise WriteRefusedError with the code and a remedy."""
        for record, code in some(self.refused(), "refused() gives none"):
            self._check_refused(record, code)

    def test_what_is_no_record_is_refused(self) -> None:
        """JSON objects that are not records raise WriteRefusedError."""
        for record in NO_RECORDS:
            self._check_refused(record)

    def _check_refused(self, record: Json, code: str | None = None) -> None:
        writer = self._open_writer(Sink.memory(), self._options({}))
        error = self._refusal(writer, record)
        outcome = "was written" if error is None else f"is refused with {error.code}"
        is_as_expected = error is not None and code in {None, error.code}
        assert is_as_expected, f"{short(record)} {outcome}, not refused with {code or 'a code'}"

    def test_refused_records_leave_nothing(self) -> None:
        """A refused record leaves no bytes, wherever it occurs."""
        long_stream = self._streams()[0]
        stream = attrs.evolve(long_stream, json_records=long_stream.json_records[:40])
        file_bytes = self._bytes_of(stream.json_records, stream.options)
        refused = [record for record, _ in self.refused()]
        refused += NO_RECORDS
        for count in sorted({0, len(stream.json_records) // 2, len(stream.json_records)}):
            self._check_no_effect(stream, count, refused, file_bytes)

    def _check_no_effect(
        self, stream: Stream, count: int, refused: Sequence[Json], file_bytes: bytes
    ) -> None:
        """Check that records are refused after ``count`` others, and leave the file as it is."""
        sink, writer = self._written_until(stream, count)
        for record in refused:
            assert self._refusal(writer, record) is not None, f"{short(record)} was not refused"
        all_written(writer, stream.json_records[count:]).close()
        if sink.getvalue() != file_bytes and len(refused) > 1:
            for record in refused:  # find the one that had an effect
                self._check_no_effect(stream, count, [record], file_bytes)
        what = f"{' or '.join(map(short, refused[:3]))}, refused after {count} records"
        check_same(sink.getvalue(), file_bytes, what)

    def test_wrong_values_are_refused_or_take_effect(self) -> None:
        """An edited field is read back as edited, or the record is refused.

        Fields get any JSON values, and are removed and emptied; one that no record has is refused.
        Only WriteRefusedError may be raised, and a refused record must have no effect.
        """
        streams = [
            attrs.evolve(stream, json_records=stream.json_records[:100], data=None)
            for stream in self._streams()
        ]
        file_bytes = [self._bytes_of(stream.json_records, stream.options) for stream in streams]
        for (stream_number, number), paths in _places(streams).items():
            record = streams[stream_number].json_records[number]
            edits: list[tuple[Path, Any]] = []
            for path in paths:
                kind = type(_value_at(record, path))
                values = (MISSING, kind(), *VALUES, *EDGES.get(kind, ()))
                edits += [(path, value) for value in values]
            self._check_edits(streams[stream_number], number, edits, file_bytes[stream_number])

    def _check_edits(
        self, stream: Stream, number: int, edits: Sequence[tuple[Path, Any]], file_bytes: bytes
    ) -> None:
        """Check that each edit of a record takes effect or is refused."""
        record = stream.json_records[number]
        refused = []
        whole_stream, whole_number = stream, number
        stream, number = self._with_few_before(stream, number)
        sink, writer = self._written_until(stream, number)
        for path, value in edits:
            edited = _edited(record, path, value)
            if self._refusal(writer, edited) is not None:
                refused.append(edited)
                continue
            path_text = ".".join(map(str, path))
            edit_text = f"{record['record']} with {path_text} {short(value)}"
            is_unknown_field = ADDED in path and value is not MISSING
            assert not is_unknown_field, f"{edit_text}: a field that no record has is not refused"
            writer.close()
            self._check_effect(sink.getvalue(), stream, number, (path, value), edit_text)
            sink, writer = self._written_until(stream, number)
        # All that were refused at once: one by one only if that has an effect.
        if refused:
            self._check_no_effect(whole_stream, whole_number, refused, file_bytes)

    def _with_few_before(self, stream: Stream, number: int) -> tuple[Stream, int]:
        """Return a stream that ends with a record, after as few as it needs, and its number there.

        What is before a record is written again for each edit of it. The first of each kind stays,
        so that a writer is in the states that it has in the file; of the others only so many as
        let the record be read back as it is.
        """
        before = stream.json_records[:number]
        record = stream.json_records[number]
        for head in HEADS:
            known_kinds = set()
            few = []
            for place, earlier in enumerate(before):
                kind = (earlier.get("record"), earlier.get("kind"))
                if place < head or kind not in known_kinds:
                    few.append(earlier)
                known_kinds.add(kind)
            short_stream = attrs.evolve(stream, json_records=[*few, record])
            if len(few) < number and self._reads_back_last(short_stream):
                return short_stream, len(few)
        return stream, number

    def _reads_back_last(self, stream: Stream) -> bool:
        """Return whether the last record of a stream is the last that is read of its file."""
        if self._reader_if_any() is None:
            return False
        try:
            output = self._bytes_of(stream.json_records, stream.options)
            with self._open(output) as capture:
                records = shown_of(capture)
        except FxError:
            return False
        last = self._without_derived(stream.json_records[-1])
        return bool(records) and bool(self._without_derived(records[-1]) == last)

    def _check_effect(
        self, output: bytes, stream: Stream, number: int, edit: tuple[Path, Any], where: str
    ) -> None:
        """Check that the last record of a file has the value of an edit, where that can be seen."""
        path, value = edit
        is_ignored = any(
            key in {ADDED, *self._derived} or str(key).endswith(("_bytes_hex", "_bits"))
            for key in path
        )
        if value is MISSING or is_ignored or self._reader_if_any() is None:
            return
        with self._open(output) as capture:
            records = shown_of(capture)
        assert records, f"{where}: accepted, but there is no record in the file"
        if records[-1]["record"] in UNSOUND:
            return
        read_value = _value_at(records[-1], path)
        old_value = _value_at(stream.json_records[number], path)
        if isinstance(value, int) and isinstance(read_value, str) and read_value is not MISSING:
            return  # a value of an enumeration, shown by name
        if read_value is MISSING and not value and type(value) is type(old_value):
            without = _edited(stream.json_records[number], path, MISSING)
            records_without = [*stream.json_records[:number], without]
            default_bytes = self._bytes_of(records_without, stream.options)
            check_same(output, default_bytes, f"{where}, which is not shown, beside no such field")
            return  # the default value of an omitted field
        if read_value is MISSING:
            records_so_far = stream.json_records[: number + 1]
            unchanged = self._bytes_of(records_so_far, stream.options)
            if output != unchanged:
                return  # it took effect, and made the record one of another form
        read_fields = self._without_derived(read_value)
        assert read_fields == self._without_derived(value), (
            f"{where}: accepted, but read again it is {short(read_value)}"
        )

    def _refusal(self, writer: RecordWriter, record: Json) -> WriteRefusedError | None:
        """Return the error that refuses a record, and check it; None if it is written."""
        try:
            writer.write(record)
            return None
        except WriteRefusedError as error:
            refused = error
        except Exception as error:
            what = f"{type(error).__name__} ({error}), not WriteRefusedError"
            raise AssertionError(f"{short(record)} raises {what}") from error
        what = f"{short(record)} is refused with {refused.code}"
        code = refused.code
        rule = FRAMEWORK_RULES.get(code)
        if code in self.rules:
            rule = self.rules[code]
        assert rule is not None, f"{what}, which is in no catalogue"
        assert rule.severity is Severity.ERROR, f"{what}, whose severity is {rule.severity.word}"
        assert refused.message, f"{what}, without a message"
        assert refused.remedy or rule.remedy, f"{what}: neither the error nor the rule has a remedy"
        return refused


def _places(streams: Sequence[Stream]) -> dict[tuple[int, int], list[Path]]:
    """Return the paths of each field of each form of record, once, by stream and record number.

    Records have the same form if their kind and their fields are the same.
    """
    places: dict[tuple[int, int], list[Path]] = {}
    known_forms = set()
    for stream_number, stream in enumerate(streams):
        for number, record in enumerate(stream.json_records):
            kind = (record.get("record"), record.get("kind"))
            for path in [*_paths(record), (ADDED,)]:
                form = (kind, tuple(record), path)
                if form not in known_forms:
                    known_forms.add(form)
                    places.setdefault((stream_number, number), []).append(path)
    return places


def _paths(json_value: Any) -> Iterator[Path]:
    """Yield the paths of all values in JSON; of lists only the first three items."""
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(json_value, Mapping):
        items = json_value.items()
    elif isinstance(json_value, list):
        items = list(enumerate(json_value))[:3]
    for key, value in items:
        yield (key,)
        for path in _paths(value):
            yield (key, *path)


def _value_at(json_value: Any, path: Path) -> Any:
    """Return the value in JSON at a path; ``MISSING`` if there is none."""
    try:
        return functools.reduce(operator.getitem, path, json_value)
    except (KeyError, IndexError, TypeError):
        return MISSING


def _edited(record: Json, path: Path, value: Any) -> dict[str, Any]:
    """Return a copy of a record with a value at a path, or with none, for ``MISSING``."""
    edited: dict[str, Any] = copy.deepcopy(dict(record))
    container = functools.reduce(operator.getitem, path[:-1], cast("Any", edited))
    if value is not MISSING:
        container[path[-1]] = value
    elif isinstance(container, list) or path[-1] in container:
        del container[path[-1]]
    return edited

"""Every selection, through every exporter, of every format: rows as a plain filter chooses them."""

from __future__ import annotations

import csv
import fnmatch
import functools
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from fxframework.errors import FxError, UsageError, WriteRefusedError
from fxframework.exporters import chrome, text
from fxframework.host import default_host
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.model.schema import TABLE_CODES
from fxframework.model.selection import Selection

from ..cases import cases
from ..samples import export_bytes, one_of_each, samples

NAMES = {code: name for name, code in TABLE_CODES.items()}
Row = dict[str, Any]


@pytest.fixture(params=one_of_each())
def capture(request: pytest.FixtureRequest) -> Iterator[Capture]:
    format, data = samples()[request.param]
    with default_host().open(data, format=format) as capture:
        yield capture


def test_every_format_that_has_tables_has_a_sample() -> None:
    sampled = set()
    for format, data in samples().values():
        with default_host().open(data, format=format) as capture:
            sampled.add(capture.format)
    assert set(default_host().readers) - sampled <= {"records"}  # which are of the other formats


# --- selections ----------------------------------------------------------------------------------


def rows_of(capture: Capture, name: str) -> list[Row]:
    table = capture.table(name)
    columns = [table.plain(column) for column in table.columns]
    return [dict(zip(table.columns, row, strict=True)) for row in zip(*columns, strict=True)]


def raw(capture: Capture, name: str) -> list[Row]:
    """Rows with their numbers as they are, strings resolved."""
    table = capture.table(name)
    columns = []
    for column in table.columns:
        kind = table.schema.column(column).kind
        columns.append(
            table.texts(column) if kind in {"code", "text"} else table.array(column).tolist()
        )
    return [dict(zip(table.columns, row, strict=True)) for row in zip(*columns, strict=True)]


def selections(capture: Capture) -> dict[str, Selection]:
    """Every way of choosing, with a value that this capture has."""
    found: dict[str, Selection] = {}
    timed = [
        row["ts"]
        for name, schema in capture.schemas.items()
        if any(column.name == "ts" for column in schema.columns)
        for row in raw(capture, name)
    ]
    if timed:
        first, last = min(timed), max(timed)
        third = (last - first) // 3
        found["time"] = Selection(start_ns=first + third, stop_ns=last - third + 1)
        found["since"] = Selection(start_ns=first + third)
        found["nothing"] = Selection(start_ns=last + 10**15)
    if "threads" in capture.schemas:
        for row in raw(capture, "threads")[:4]:
            found[f"thread {row['pid']}/{row['tid']}"] = Selection(
                threads=(f"{row['pid']}/{row['tid']}",)
            )
        for name in sorted({str(row["name"]) for row in raw(capture, "threads") if row["name"]})[
            :4
        ]:
            found[f"thread {name}"] = Selection(threads=(name,))
        if "processes" in capture.schemas:
            for row in raw(capture, "processes")[:4]:
                found[f"process {row['pid']}"] = Selection(processes=(str(row["pid"]),))
    categories = {
        row["category"]
        for name, schema in capture.schemas.items()
        if any(column.name == "category" for column in schema.columns)
        for row in raw(capture, name)
        if row["category"]
    }
    for category in sorted(categories)[:2]:
        found[f"category {category}"] = Selection(categories=(category,))
    if "slices" in capture.schemas:
        called = sorted({row["name"] for row in raw(capture, "slices") if row["name"]})
        for function in called[:2]:
            found[f"function {function}"] = Selection(functions=(function,))
            found[f"exclude function {function}"] = Selection(exclude_functions=(function,))
        lengths = sorted(row["dur"] for row in raw(capture, "slices") if row["dur"] >= 0)
        if lengths:
            found["least length"] = Selection(min_duration_ns=lengths[len(lengths) // 2] + 1)
            if called:
                found["least length, others excluded"] = Selection(
                    min_duration_ns=lengths[len(lengths) // 3] + 1, exclude_functions=called[-1:]
                )
    if "logs" in capture.schemas and raw(capture, "logs"):
        logs = raw(capture, "logs")
        found["severity"] = Selection(min_severity=0x30)
        found["filter"] = Selection(filters=(str(logs[0]["message"])[:4],))
        found["exclude"] = Selection(excludes=(str(logs[0]["message"])[:4],))
        found["kernel"] = Selection(kernel=True)
        if logs[0]["pid"] is not None:
            found["pid"] = Selection(pids=(logs[0]["pid"],))
        tags = sorted(
            {tag.strip() for row in logs for tag in (row["tags"] or "").split(",")} - {""}
        )
        if tags:
            found["tag"] = Selection(tags=(tags[0],))
            found["exclude tag"] = Selection(exclude_tags=(tags[0],))
        components = sorted({row["component"] for row in logs if row["component"]})
        if components:
            found["component"] = Selection(components=(components[0],))
    if found.get("time") and "threads" in capture.schemas and raw(capture, "threads"):
        who = raw(capture, "threads")[0]
        found["thread and time"] = Selection(
            start_ns=found["time"].start_ns, threads=(f"{who['pid']}/{who['tid']}",)
        )
    return found


# --- what a plain filter chooses -----------------------------------------------------------------


class Expected:
    """Rows of a part, by going through all rows of the whole, one at a time."""

    def __init__(self, capture: Capture, part: Selection) -> None:
        self.capture = capture
        self.part = part
        self.threads = self._chosen_threads()
        self.parents: dict[int, int] = {}
        if "slices" in capture.schemas:
            self.parents = {row["row"]: row["parent"] for row in raw(capture, "slices")}
        self.skipped = self._skipped_slices()

    def _skipped_slices(self) -> set[int]:
        """Slices that are too short, but for those around others, or of excluded functions."""
        part = self.part
        slices = raw(self.capture, "slices") if part.skips else []
        excluded = {
            row["row"] for row in slices if self._any((row["name"],), part.exclude_functions)
        }
        least = part.min_duration_ns or 0
        short = {row["row"] for row in slices if 0 <= row["dur"] < least} - excluded
        for row in self.parents.keys() - short - excluded:
            short -= set(self._around(row))
        return short | excluded

    def _around(self, row: int) -> Iterator[int]:
        """Rows of the slices around one, from the inside."""
        while (row := self.parents[row]) >= 0:
            yield row

    def row(self, name: str, row: Row) -> Row:
        """The row as the part has it: skipped slices are around nothing."""
        if name == "slices":
            around = [each for each in self._around(row["row"]) if each not in self.skipped]
            return {**row, "parent": next(iter(around), -1), "depth": len(around)}
        if name == "flows" and row["slice"] in self.skipped:
            around = [each for each in self._around(row["slice"]) if each not in self.skipped]
            return {**row, "slice": next(iter(around), -1)}
        return row

    def _chosen_threads(self) -> dict[int, tuple[int, int]] | None:
        """Chosen threads: pid and tid by id."""
        part = self.part
        if not (part.threads or part.processes):
            return None
        of_process = (
            {row["pid"]: row["name"] for row in raw(self.capture, "processes")}
            if "processes" in self.capture.schemas
            else {}
        )
        chosen = {}
        for row in raw(self.capture, "threads"):
            calls = (str(row["name"]), str(row["tid"]), f"{row['pid']}/{row['tid']}")
            owner = (str(of_process.get(row["pid"])), str(row["pid"]))
            if part.threads and not self._any(calls, part.threads):
                continue
            if part.processes and not self._any(owner, part.processes):
                continue
            chosen[row["id"]] = (row["pid"], row["tid"])
        return chosen

    @staticmethod
    def _any(texts: tuple[str | None, ...], patterns: tuple[str, ...]) -> bool:
        return any(t is not None and fnmatch.fnmatchcase(t, p) for t in texts for p in patterns)

    def rows(self, name: str) -> set[int]:
        """Numbers of the rows that belong."""
        schema = self.capture.schemas[name]
        if name == "args":
            return {row["row"] for row in raw(self.capture, "args") if self._argument(row)}
        if schema.parent_table is not None and schema.parent_table in self.capture.schemas:
            parents = self.rows_once(schema.parent_table)
            return {row["row"] for row in raw(self.capture, name) if row["parent"] in parents}
        return {row["row"] for row in raw(self.capture, name) if self._belongs(name, row)}

    def _argument(self, row: Row) -> bool:
        """Whether an argument belongs: with its row, or, of a counter's text, with its record."""
        table = NAMES.get(row["table"])
        if table is None:
            return True  # of a plugin's table
        if table == "counters" and row["parent"] < 0:
            kept = self.rows_once("counters")
            rows = raw(self.capture, "counters")
            return row["offset"] in {each["offset"] for each in rows if each["row"] in kept}
        return table in self.capture.schemas and row["parent"] in self.rows_once(table)

    @functools.cache  # noqa: B019 (lives for one test)
    def rows_once(self, name: str) -> frozenset[int]:
        return frozenset(self.rows(name))

    def _belongs(self, name: str, row: Row) -> bool:
        part = self.part
        if name == "slices" and row["row"] in self.skipped:
            return False
        if "ts" in row and not self._in_time(row):
            return False
        if not self._of_thread(name, row):
            return False
        if (
            part.categories
            and "ts" in row
            and not self._any((row.get("category"),), part.categories)
        ):
            return False
        if part.functions and "ts" in row:
            if name not in {"slices", "instants"} or not row["name"]:
                return False
            if not self._any((row["name"],), part.functions):
                return False
        return not (part.by_logs and "ts" in row) or (name == "logs" and self._log(row))

    def _in_time(self, row: Row) -> bool:
        start, stop = self.part.start_ns, self.part.stop_ns
        if stop is not None and row["ts"] >= stop:
            return False
        if start is None or row["ts"] >= start:
            return True
        if "dur" not in row:
            return False
        if row["dur"] < 0:
            return True
        return bool(row["ts"] + row["dur"] > start)

    def _of_thread(self, name: str, row: Row) -> bool:
        if self.threads is None:
            return True
        ids = [row[column] for column in ("thread", "prev", "next") if column in row]
        if ids:
            return any(number in self.threads for number in ids)
        if name in {"threads", "processes"}:
            tasks = set(self.threads.values()) | self._others()
            if name == "threads":
                return (row["pid"], row["tid"]) in tasks
            return row["pid"] in {pid for pid, _ in tasks}
        if name == "logs":
            return (row["pid"], row["tid"]) in self.threads.values()
        return True

    @functools.cache  # noqa: B019 (lives for one test)
    def _others(self) -> frozenset[tuple[int, int]]:
        """Threads at the other side of a context switch that belongs."""
        if "sched" not in self.capture.schemas:
            return frozenset()
        rows = self.rows_once("sched")
        sides = {
            row[side]
            for row in raw(self.capture, "sched")
            if row["row"] in rows
            for side in ("prev", "next")
        }
        return frozenset(
            (row["pid"], row["tid"]) for row in raw(self.capture, "threads") if row["id"] in sides
        )

    def _log(self, row: Row) -> bool:
        part = self.part
        tags = [tag.strip().lower() for tag in (row["tags"] or "").split(",")]
        message = (row["message"] or "").lower()
        component = (row["component"] or "").lower()

        def holds(text: str) -> bool:
            return text.lower() in message or text.lower() in component

        return all((
            part.min_severity is None or row["severity"] >= part.min_severity,
            not part.filters or any(holds(text) for text in part.filters),
            not any(map(holds, part.excludes)),
            not part.kernel or component == "klog" or "klog" in tags,
            not part.pids or (row["pid"] in part.pids and row.get("log_given", 2) & 2),
            not part.components or any(c.lower() in component for c in part.components),
            not part.tags or any(tag.lower() in tags for tag in part.tags),
            not any(tag.lower() in tags for tag in part.exclude_tags),
        ))  # fmt: skip


def test_the_rows_of_a_part_are_those_that_a_plain_filter_chooses(capture: Capture) -> None:
    parts = selections(capture)
    for label, part in parts.items():
        window = capture.select(part)
        expected = Expected(capture, part)
        for name in capture.schemas:
            chosen = raw(window, name)
            by_number = {row["row"]: row for row in raw(capture, name)}
            assert {row["row"] for row in chosen} == expected.rows_once(name), (label, name)
            whole_rows = [by_number[row["row"]] for row in chosen]
            if part.skips:
                whole_rows = [expected.row(name, row) for row in whole_rows]
            assert repr(chosen) == repr(whole_rows), (label, name)


def test_every_exporter_takes_every_part(capture: Capture, tmp_path: Path) -> None:
    """A result, or a refusal with a code; nothing else: one part of each way of choosing.

    Each exporter gets the whole and a third of the parts; captures of one format get others.
    """
    host = default_host()
    parts: dict[str, Selection | None] = {"all": None}
    for label, part in selections(capture).items():
        parts.setdefault(label.partition(" ")[0], part)
    exporters = {e.name for e in host.exporters_for(capture.format, capture.tables)}
    done = 0
    for part_number, (label, part) in enumerate(parts.items(), len(capture.source.data)):
        # A database takes 80 ms, and its rows are those of the other tables.
        names = exporters - ({"duckdb"} if label not in {"all", "time"} else set())
        for number, name in enumerate(sorted(names), part_number):
            if part is not None and number % 3:
                continue
            try:
                window = capture if part is None else capture.select(part)
                export_bytes(window, name, tmp_path)
            except (UsageError, WriteRefusedError):
                continue
            except FxError:
                raise
            except Exception as error:
                raise AssertionError(f"{label} to {name}: {error!r}") from error
            done += 1
    assert done


@cases("generic", [text.TextExport, chrome.ChromeExport], ids=["text", "json"])
def test_what_any_format_can_become(capture: Capture, generic: Any) -> None:
    """The text and the Chrome JSON of any tables, of every part."""
    for label, part in {"all": None, **selections(capture)}.items():
        window = capture if part is None else capture.select(part)
        rows = window.row_counts()
        sink = Sink.memory()
        session = generic(sink, {})
        if generic is text.TextExport:
            expected = sum(count for name, count in rows.items() if name != "args")
        elif not capture.schemas.keys() & set(chrome.TABLES):
            continue
        else:
            expected = sum(rows.get(name, 0) for name in chrome.TABLES)
        if not expected:
            with pytest.raises(WriteRefusedError):
                session.write(window)
            continue
        session.write(window)
        session.close()
        written = sink.getvalue().decode()
        if generic is text.TextExport:
            assert written.count("\n") == expected, label
            times = [line[1:].partition("]")[0] for line in written.splitlines() if line[0] == "["]
            assert times == sorted(times, key=Decimal), label
        else:
            events = json.loads(written)["traceEvents"]
            assert sum(event["ph"] in "XBbiCstf" for event in events) == expected, label


def test_csv_names_the_threads_of_every_row_of_a_part(capture: Capture, tmp_path: Path) -> None:
    """A line of a part is the same line of the whole: nothing that it names has gone."""

    def lines(part: Capture, name: str) -> set[frozenset[tuple[str, str]]]:
        text = export_bytes(part, "csv", tmp_path, table=name).decode()
        # The column of arguments is there where a row has some.
        rows = csv.DictReader(text.splitlines(keepends=True))
        return {frozenset(item for item in row.items() if item[1]) for row in rows}

    for name in capture.schemas:
        if not len(capture.table(name)):
            continue
        whole = lines(capture, name)
        for label, part in selections(capture).items():
            try:
                if part.skips and name in {"slices", "flows"}:
                    continue  # what encloses a slice is another one
                assert lines(capture.select(part), name) <= whole, (label, name)
            except WriteRefusedError:
                continue

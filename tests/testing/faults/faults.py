"""Faults: small mistakes that plugins have, each put into a copy of pulse.

Each says which contract has to notice it (``of``), what it changes in which file, and a pattern
that the first line of the failure must hold, so that its author knows what is wrong.
"""

# ruff: noqa: E501 (texts of files, as they are there)

from __future__ import annotations

import attrs

__all__ = ["FAULTS", "Fault"]


@attrs.frozen
class Fault:
    """One mistake."""

    what: str
    of: str
    file: str
    old: str
    new: str
    says: str
    process: bool = attrs.field(default=False, kw_only=True)
    """Whether it takes another process to see it."""
    by: str = attrs.field(default="", kw_only=True)
    """The slow test that catches it, where none of the quick ones does."""
    examples: int = attrs.field(default=6, kw_only=True)
    """Inputs that properties are tried with."""
    missed: str = attrs.field(default="", kw_only=True)
    """Why the kit does not catch it; the docs say so."""


VIEW = """    def _table(self, name: str) -> Table:
        return _Rows(self).table(name)
"""
RECORDS = '''    def records(self) -> Iterator[PulseRecord]:
        """The header, the records, and what is left."""
'''


def _diagnostics(arguments: str) -> str:
    """A capture that makes its own findings."""
    return f'''    def __init__(self, source: Source, request: Any) -> None:
        """Open it."""
        from fxframework.model.diagnostics import Diagnostics

        super().__init__(source, request, Diagnostics(RULES, {arguments}))

{RECORDS}'''


def _summary(change: str) -> str:
    return f'''    def summary(self) -> Any:
        """Counts and times."""
        import collections

        found = super().summary()
        return attrs.evolve(found, {change})

{VIEW}'''


ALL = "limit=request.limits.max_findings"
STRICT = "strict=request.strict"
NAME = "path=source.name"
WATCH = "observer=request.observer"
SNIFF = "            magic=MAGIC,\n"
BEGINS = "probe.head[:8] == MAGIC"

READER = [
    # --- values ---
    Fault("microseconds for nanoseconds", "reader", "reader.py",
          "MICROSECOND = 1000", "MICROSECOND = 1", "µs for ns"),
    Fault("events without their threads", "reader", "reader.py",
          'self.ids.get(fields["thread"], -1)', "-1", "thread is None, not '7/9'"),
    Fault("pid and tid swapped", "reader", "reader.py",
          '"id pid tid name"', '"id tid pid name"', "pid is 9|'9/7'"),
    Fault("fields in the wrong order", "reader", "reader.py",
          '5: ("mark", "thread name time value"', '5: ("mark", "thread name value time"',
          "value: instants row 0|summary's start|start_ns"),
    Fault("thread and name swapped", "reader", "reader.py",
          '3: ("begin", "thread name time"', '3: ("begin", "name thread time"', "value: slices row"),
    Fault("a string is cut short", "reader", "reader.py",
          'bytes.fromhex(fields["text"])', 'bytes.fromhex(fields["text"])[:3]', "name is 'loa'"),
    Fault("bytes shown as Python shows them", "reader", "reader.py",
          'self.strings.get(fields["name"], b"?")',
          'str(self.strings.get(fields["name"], b"?"))', "Python shows of bytes"),
    Fault("names are missing", "reader", "reader.py",
          'self.strings.get(fields["name"], b"?")', 'self.strings.get(fields["name"] + 9)',
          "null name"),
    Fault("uint forgets what is below zero", "reader", "reader.py",
          '"uint": value % (1 << 64)', '"uint": max(value, 0)', "int and uint"),
    Fault("an argument belongs to the row before", "reader", "reader.py",
          '"parent": len(rows) - 1,\n             "name": b"value"',
          '"parent": len(rows) - 2,\n             "name": b"value"', "args: an argument|args.parent|parent is"),
    Fault("a type that does not exist", "reader", "reader.py",
          '"type": 3,', '"type": 77,', "enumeration: args.type"),
    Fault("a counter that is scaled", "reader", "reader.py",
          '"value": float(value)', '"value": float(value) / 10', "counters row 0: value is 4.0"),
    # --- places ---
    Fault("row offsets behind the head of a record", "reader", "reader.py",
          '            "offset": record.offset,\n            "ts"',
          '            "offset": record.offset + 2,\n            "ts"', "row offset"),
    Fault("findings count records from 1", "reader", "reader.py",
          "[code], record.offset, index)", "[code], record.offset, index + 1)",
          "finding's (record|place)"),
    Fault("findings at the start of the file", "reader", "reader.py",
          "[code], record.offset, index)", "[code], 0, index)",
          "finding's place"),
    Fault("row times differ from record times", "reader", "reader.py",
          '"ts": record.ns,', '"ts": record.ns + 1,', "record time"),
    Fault("records of another offset", "reader", "reader.py",
          '"nbytes": self.nbytes}', '"nbytes": self.nbytes - 1}', "has offset and nbytes"),
    Fault("bytes behind the damage are lost", "reader", "reader.py",
          'yield PulseRecord("damaged", at, self.source.read(at, size - at)), "PUL0001"', "pass",
          "records end at"),
    Fault("JSON that is not JSON", "reader", "reader.py",
          'shown["raw"] = self.raw.hex()', 'shown["raw"] = self.raw', "plain JSON"),
    Fault("explain shows the next record", "reader", "reader.py",
          "FieldView(at, 0, 7", "FieldView(at + length, 0, 7", "explain: of byte"),
    # --- nesting ---
    Fault("depth counts from 1", "reader", "reader.py",
          '"depth": len(stack)', '"depth": len(stack) + 1', "depth"),
    Fault("the parent is the row before", "reader", "reader.py",
          "parent = stack[-1] if stack else -1", "parent = len(rows) - 1 if stack else -1",
          "nesting: slice|depth: slice"),
    Fault("the length is the end", "reader", "reader.py",
          'min(max(record.ns - row["ts"], 0), NS_MAX)', "max(record.ns, 0)",
          "ends after|summary's end|dur is"),
    Fault("an end closes the outermost slice", "reader", "reader.py",
          'self.rows["slices"][stack.pop()]', 'self.rows["slices"][stack.pop(0)]', "nesting|dur is"),
    Fault("complete events are never closed", "reader", "reader.py",
          '"pulse_end": -1})', '"pulse_end": -1, "kind": 1})', "a complete event has an end"),
    # --- summary ---
    Fault("the summary starts at 0", "reader", "reader.py",
          VIEW, _summary("start_ns=0"), "summary's start|start_ns"),
    Fault("the summary ends with the first row", "reader", "reader.py",
          VIEW, _summary("end_ns=found.start_ns"), "summary's end"),
    Fault("the summary counts other rows", "reader", "reader.py",
          VIEW, _summary("rows={name: 1 for name in self.schemas}"), "summary's rows"),
    Fault("the summary has one kind", "reader", "reader.py",
          VIEW, _summary('kinds={"record": found.records}'), "counts kinds"),
    # --- findings ---
    Fault("max_findings is ignored", "reader", "reader.py",
          RECORDS, _diagnostics(f"{STRICT}, {NAME}, {WATCH}"), "max_findings=1 is ignored"),
    Fault("strict is ignored", "reader", "reader.py",
          RECORDS, _diagnostics(f"{ALL}, {NAME}, {WATCH}"), "StrictError"),
    Fault("errors name no input", "reader", "reader.py",
          RECORDS, _diagnostics(f"{ALL}, {STRICT}, {WATCH}"), "path: the error"),
    Fault("observers are not called", "reader", "reader.py",
          RECORDS, _diagnostics(f"{ALL}, {STRICT}, {NAME}"), "observer is not called"),
    Fault("max_record is ignored", "reader", "reader.py",
          "if limit and length > limit:", "if not at:", "max_record=.* is ignored"),
    Fault("findings are reported again", "reader", "reader.py",
          "findings = self.record_diagnostics", "findings = self.diagnostics", "reported again"),
    Fault("tables that report nothing", "reader", "reader.py",
          "for record in capture.records():", "for record, _ in capture._records():",
          "findings of the tables"),
    Fault("an unknown record is not reported", "reader", "reader.py",
          '"PUL0002" if record.record == "unknown" else ""', '""', "findings: damaged.pulse"),
    Fault("a loss is a mere remark", "reader", "plugin.py",
          'Severity.DATA_LOSS, "the rest is damaged"', 'Severity.INFO, "the rest is damaged"',
          "no finding of DATA_LOSS",
          by="test_truncation_keeps_the_records_before_it"),
    Fault("a code of no catalogue", "reader", "reader.py",
          '"PUL0001"', '"PUL0099"', "no rule 'PUL0099'"),
    # --- following and choosing ---
    Fault("resume stops at the end of the file", "reader", "reader.py",
          "end = record.offset + record.nbytes", "end = self.source.size", r"resume\(\) of"),
    Fault("resume forgets what must precede", "reader", "reader.py",
          'if record.record in {"header", "string", "thread"}', 'if record.record == "header"',
          r"resume\(\) of .* rows of"),
    Fault("threads once for each mention", "reader", "reader.py",
          "        if not known:", "        if fields:", "rows of threads"),
    Fault("batches lose their last row", "reader", "reader.py",
          VIEW, VIEW + """
    def _batches(self, name: str, rows: int) -> Iterator[Table]:
        whole = self.table(name)
        for at in range(0, len(whole), rows):
            yield whole.select(slice(at, min(at + rows, len(whole) - 1)))
""", "batches of"),
    Fault("batches of a whole table", "reader", "reader.py",
          VIEW, VIEW + """
    def _batches(self, name: str, rows: int) -> Iterator[Table]:
        whole = _Rows(self).table(name)
        return whole.batches(rows)
""", "memory in batches grows",
          by="test_memory_in_batches_is_bounded"),
    Fault("a part keeps a row too many", "reader", "reader.py",
          VIEW, VIEW + '''
    def select(self, selection: Any) -> Capture:
        """A part."""
        stop = selection.stop_ns
        return super().select(attrs.evolve(selection, stop_ns=stop and stop + 1))
''', "select: "),
    # --- other runs ---
    Fault("slices stay open in the next file", "reader", "reader.py",
          "self.open: dict[int, list[int]] = {}", 'self.open = vars(__import__("sys")).setdefault("pulse_open", {})',
          "reads differently|order: |list index|depth: slice"),
    Fault("rows are kept in the class", "reader", "reader.py",
          "self.rows: dict[str, list[dict[str, Any]]] = {name", "type(self).rows = {name",
          "in several threads"),
    Fault("a set decides", "reader", "reader.py",
          '"series": b"value"', '"series": b" ".join({b"value", b"sum", b"total", b"mean", b"a", b"b", b"c", b"d"})',
          "another seed of hashes", process=True),
    Fault("the size is that of the file", "reader", "reader.py",
          "size, limit = self.source.size,",
          "path = self.source.path\n        size, limit = (path.stat().st_size if path else "
          "self.source.size),", "a file, reads differently|records"),
    # --- damage ---
    Fault("a lone byte ends in a traceback", "reader", "reader.py",
          "[*self.source.read(at, 2), 0][:2]", "self.source.read(at, 2)",
          "ValueError: not enough values"),
    Fault("a size of 0 is read for ever", "reader", "reader.py",
          "if length < 2 or at + length > size:", "if at + length > size:", "endless|of no bytes"),
    Fault("time grows with the square", "reader", "reader.py",
          "        stack.append(len(rows) - 1)",
          "        stack.append([n for n, row in enumerate(rows) for _ in range(20) if row['dur'] != -2][-1])",
          "time: |endless: test_time", by="test_time_follows_the_size"),
    # --- sniffing ---
    Fault("the sniffer looks around", "reader", "plugin.py",
          SNIFF, SNIFF + f'            sniff=lambda probe: Confidence(3 * ({BEGINS} and '
          'bool(__import__("os").listdir(".")))),\n', "more than read the probe"),
    Fault("the sniffer opens the file if there is one", "reader", "plugin.py",
          SNIFF, SNIFF + f"            sniff=lambda probe: Confidence(3 * ({BEGINS} and "
          "(not __import__('os').path.exists(probe.name) or bool(__import__('pathlib').Path(probe.name).read_bytes())))),\n",
          "does more than read the probe: opens the file"),
    Fault("the sniffer prints", "reader", "plugin.py",
          SNIFF, SNIFF + f'            sniff=lambda probe: (print("sniffing"), '
          f"Confidence(3 * ({BEGINS})))[1],\n", "prints 'sniffing'"),
    Fault("the sniffer gives a bool", "reader", "plugin.py",
          SNIFF, SNIFF + f"            sniff=lambda probe: {BEGINS},\n", "not a Confidence"),
    Fault("the sniffer fails on no bytes", "reader", "plugin.py",
          SNIFF, SNIFF + "            sniff=lambda probe: Confidence(3 * (probe.head[0] == 80 and "
          f"{BEGINS})),\n", "IndexError"),
    # --- registration ---
    Fault("a suffix that is a text", "reader", "plugin.py",
          SNIFF, SNIFF + '            suffixes=".pulse",\n', "suffix"),
    Fault("a column without a prefix", "reader", "reader.py",
          'Column("pulse_end"', 'Column("finish", "i8", "nothing"), Column("pulse_end"',
          "column slices.finish has no prefix"),
    Fault("codes of another format", "reader", "plugin.py", 'f"PUL{number:04}"', 'f"FXT{number:04}"',
          "rule FXT0001 has a code of the format trace"),
    Fault("a rule that says nothing", "reader", "plugin.py",
          'ours="It is kept as it is."', 'ours=""', "rule PUL0001 has no ours"),
    Fault("a default of another type", "reader", "plugin.py",
          "type=int, default=0", 'type=int, default="0"', "option gap"),
    Fault("a name that nothing has", "reader", "plugin.py",
          'open=lazy("pulse.reader:PulseCapture")', 'open=lazy("pulse.reader:PulseCaptur")',
          "has no 'PulseCaptur'"),
    Fault("the hooks import numpy", "reader", "plugin.py",
          "from collections.abc import Iterable\n",
          "from collections.abc import Iterable\n\nimport numpy\n", "imports .*numpy", process=True),
    Fault("two steps of one name", "reader", "plugin.py",
          '("save", "Keep a ring\'s bytes.")', '("emit", "Keep a ring\'s bytes.")',
          "already registered"),
]  # fmt: skip

WRITER = [
    Fault("the end is never written", "writer", "writer.py",
          '        """Write what is held back."""\n        self._flush()',
          '        """Write what is held back."""', "bytes differ|differ from"),
    Fault("a refused record leaves a byte", "writer", "writer.py",
          "            raise refusal(", '            self._held += b"!"\n'
          "            raise refusal(", "refused"),
    Fault("numbers are cut to fit", "writer", "writer.py",
          "layout.pack(*(shown[field] for field in fields))",
          "layout.pack(*(shown[f] % (1 << 16) if f != 'time' else shown[f] for f in fields))",
          "differ|accepted, but"),
    *(Fault(f"one field takes {what}", "writer", "writer.py",
            "    if any(type(shown[field])",
            f"    value = shown.get('value', 0)\n    shown = {{**shown, 'value': {taken}}} "
            "if 'value' in shown else shown\n    if any(type(shown[field])",
            "accepted, but", by="test_wrong_values_are_refused_or_take_effect", examples=1)
      for what, taken in (
          ("fractions", "int(value) if isinstance(value, float) else value"),
          ("digits", "int(value) if isinstance(value, str) else value"),
          ("what is above its most", "min(value, (1 << 63) - 1)"),
          ("what is below its least", "max(value, 1 - (1 << 63))"))),
    Fault("an error without a code", "writer", "writer.py",
          "except Exception as error:", "except KeyError as error:", "not WriteRefusedError"),
    Fault("a refusal that is a warning", "writer", "writer.py",
          '"PUL0003"', '"PUL0002"', "refused with PUL0002|is refused with"),
    Fault("the writer commits the sink", "writer", "writer.py",
          '        """Write what is held back."""\n        self._flush()',
          '        """Write what is held back."""\n        self._flush()\n'
          "        self._sink.commit()", r"commit\(\) of the sink"),
    Fault("writers share a buffer", "writer", "writer.py",
          "self._held = bytearray()", 'self._held = KINDS.setdefault("held", bytearray())',
          "differ|bytes"),
    Fault("the JSON is changed", "writer", "writer.py",
          "        try:\n            data = _packed(shown)",
          "        if isinstance(record, dict):\n            record.pop('offset', None)\n"
          "        try:\n            data = _packed(shown)", "changed the JSON"),
    Fault("everything is held in memory", "writer", "writer.py",
          "if len(self._held) > 4096:", "if not data:", "memory grows with the file",
          by="test_memory_does_not_grow_with_what_was_written"),
    Fault("the beginning of each record is kept", "writer", "writer.py",
          "        self._held += data\n",
          "        self._held += data\n        vars(self).setdefault('_begun', []).append(data[:40])\n",
          "memory grows with the file", by="test_memory_does_not_grow_with_what_was_written"),
    Fault("extract keeps a record too many", "writer", "writer.py",
          "part = capture.select(selection)",
          "stop = selection.stop_ns\n    part = capture.select(Selection(start_ns=selection."
          "start_ns, stop_ns=stop and stop + 1, threads=selection.threads))",
          "extract: .*outside of the part"),
    Fault("extract forgets the counters", "writer", "writer.py",
          'for name in ("slices", "instants", "counters"):', 'for name in ("slices", "instants"):',
          "extract|counters"),
    Fault("extract forgets the threads that were chosen", "writer", "writer.py",
          "part = capture.select(selection)",
          "part = capture.select(Selection(start_ns=selection.start_ns, stop_ns=selection.stop_ns))",
          "extract: .*thread .*outside of the part"),
    Fault("extract loses rows and says that it dropped one", "writer", "writer.py",
          'for name in ("slices", "instants", "counters"):\n        table = part.table(name)\n'
          '        kept.update(table.array("offset").tolist())',
          'from fxframework.model.selection import Omitted\n'
          '    for name in ("slices", "instants", "counters"):\n        table = part.table(name)\n'
          '        kept.update(table.array("offset").tolist()[2:])',
          "extract: .*lacks .* more than its `dropped` counts"),
    Fault("extract reports nothing", "writer", "writer.py",
          'return {"records": left_out} if left_out else {}', "return {}", "extract: .*reports nothing"),
]  # fmt: skip

EXPORTER = [
    Fault("it prints", "exporter", "lines.py",
          "        self._rows += len(batch)\n",
          '        self._rows += len(batch)\n        print("rows", self._rows)\n',
          "prints 'rows"),
    Fault("it keeps a log file", "exporter", "lines.py",
          '        """What was left out."""\n',
          '        """What was left out."""\n        open("lines.log", "a").close()\n',
          "lines.log"),
    Fault("columns are lost in silence", "exporter", "lines.py",
          "set(batch.columns) - WRITTEN:", "set(batch.columns) - {*batch.columns}:",
          "dropped: .*zz_added"),
    Fault("only the first batch", "exporter", "lines.py",
          "                self._write(batch)\n",
          "                self._write(batch)\n                break\n", "in batches of 1 rows|lines of"),
    Fault("it changes the capture", "exporter", "lines.py",
          'ts = batch.array("ts").tolist()',
          'times = batch.array("ts")\n        times -= times.min()\n        ts = times.tolist()',
          "changes the table|read-only|output of"),
    Fault("the time of day is in it", "exporter", "lines.py",
          'b"time length name\\n"', 'b"time length name %d\\n" % __import__("time").time_ns()',
          "exported again|the first line"),
    Fault("close gives nothing", "exporter", "lines.py",
          "return dict(sorted(self._dropped.items()))", "return None", "not a mapping"),
    Fault("names must be UTF-8", "exporter", "lines.py",
          'name.replace(b"\\n", b"\\\\n")', "name.decode().encode()", "UnicodeDecodeError"),
    Fault("sessions share what they dropped", "exporter", "lines.py",
          "self._dropped: dict[str, int] = {}",
          'self._dropped = vars(__import__("sys")).setdefault("pulse_dropped", {})',
          "dropped: "),
    Fault("a set decides the order", "exporter", "lines.py",
          "            for batch in capture.batches(name):\n                self._write(batch)\n",
          "            for batch in capture.batches(name):\n                self._write(batch)\n"
          "                self._sink.write(b''.join({b'a', b'b', b'c', b'd', b'e', b'f', b'g', b'h'}))\n",
          "another seed of hashes", process=True),
    Fault("it commits the sink", "exporter", "lines.py",
          '        """What was left out."""\n',
          '        """What was left out."""\n        self._sink.commit()\n',
          r"commit\(\) of the sink|puts the file in place"),
    Fault("it hides that the capture failed", "exporter", "lines.py",
          "    def write(self, capture: Capture) -> None:\n",
          '    def write(self, capture: Capture) -> None:\n        """Write one."""\n'
          "        try:\n            self._all(capture)\n        except WriteRefusedError:\n"
          "            raise\n        except Exception:\n            self._rows += 1\n\n"
          "    def _all(self, capture: Capture) -> None:\n", "hides that the capture failed"),
    Fault("it writes before it refuses", "exporter", "lines.py",
          "        if not self._rows:", "        if not self._rows:\n"
          '            self._sink.write(b"# nothing")\n        if not self._rows:',
          "is refused after 9 bytes"),
    Fault("the last row of a batch is lost", "exporter", "lines.py",
          "        self._rows += len(batch)\n",
          "        self._rows += len(batch)\n        batch = batch.select(slice(0, max(1, len(batch) - 1)))\n",
          "without row|batches of"),
    Fault("a line less for slices of no length", "exporter", "lines.py",
          "        for time, length, code in zip(ts, dur, codes, strict=True):\n",
          "        for time, length, code in zip(ts, dur, codes, strict=True):\n"
          "            if length < 0:\n                continue\n",
          "row .* of slices of generated"),
    Fault("slices that took no time are left out", "exporter", "lines.py",
          "        for time, length, code in zip(ts, dur, codes, strict=True):\n",
          "        for time, length, code in zip(ts, dur, codes, strict=True):\n"
          "            if not length and 'dur' in batch:\n                continue\n",
          "without row"),
    *(Fault(f"it claims to write {column}", "exporter", "plugin.py",
            'frozenset({"ts", "dur", "name"})', f'frozenset({{"ts", "dur", "name", "{column}"}})',
            f"writes: other values of (instants|slices).{column} ")
      for column in ("thread", "depth", "kind", "category", "id")),
    Fault("slices deep down are left out", "exporter", "lines.py",
          '        ts = batch.array("ts").tolist()\n',
          '        if "depth" in batch:\n            batch = batch.select(batch.array("depth") < 3)\n'
          '        ts = batch.array("ts").tolist()\n',
          "row .* of slices of generated"),
    Fault("a third thread is left out", "exporter", "lines.py",
          '        ts = batch.array("ts").tolist()\n',
          '        batch = batch.select(batch.array("thread") < 2)\n'
          '        ts = batch.array("ts").tolist()\n',
          "row .* of (slices|instants) of generated"),
    Fault("equal lines are written once", "exporter", "lines.py",
          "        for time, length, code in zip(ts, dur, codes, strict=True):\n",
          "        for time, length, code in dict.fromkeys(zip(ts, dur, codes, strict=True)):\n",
          "without row .* of (slices|instants) of generated"),
    *(Fault(f"names are {what}", "exporter", "lines.py", "name.replace(", f"name{change}.replace(",
            "instants.name is not written whole: long texts")
      for what, change in (("cut to 100 bytes", "[:100]"), ("written in small letters", ".lower()"))),
    Fault("lengths of 32 bits", "exporter", "lines.py", "(time, length, name", "(time, length & 0xFFFFFFFF, name",
          "slices.dur is not written whole: numbers"),
    Fault("it crashes where there is nothing", "exporter", "lines.py",
          'raise WriteRefusedError("there are no events", path=capture.name)',
          "raise IndexError(self._rows)", "IndexError"),
]  # fmt: skip

STEP = [
    Fault("chance of its own", "step", "steps.py",
          'chance = run.rng(f"pulse/{given.ring}")', 'chance = __import__("random")',
          "again with the same seed|differs"),
    Fault("facts that are not JSON", "step", "steps.py",
          "marks=len(values)", "marks=set(values)", "facts"),
    Fault("a failure of the device is swallowed", "step", "steps.py",
          "    lost = sum(ring.put(value) for value in values)\n",
          "    try:\n        lost = sum(ring.put(value) for value in values)\n"
          "    except Exception:\n        lost = 0\n", "swallows a fault"),
    Fault("an output that no parameter names", "step", "steps.py",
          "    lost = sum(", '    run.put("extra", b"")\n    lost = sum(', "which no parameter names"),
    Fault("an output is not made", "keeping step", "steps.py",
          "    run.put(given.as_, data)\n", "", "does not make the output"),
    Fault("a parameter without help", "step", "steps.py",
          'parameter(3, help="how many marks", least=0, most=10_000)', "3",
          "does not say what it is for"),
    Fault("a parameter of no type", "step", "steps.py",
          "count: int = parameter(3", 'count: "Number" = parameter(3', "no JSON Schema of pulse.emit|cannot"),
    Fault("a default beyond its bounds", "step", "steps.py",
          "parameter(3, help", "parameter(-3, help", "default -3 is below 0"),
    Fault("a message of two lines", "step", "steps.py",
          'f"{len(values)} marks"', 'f"{len(values)}\\nmarks"', "several lines"),
    Fault("a text for an outcome", "step", "steps.py",
          'return Outcome.ok(f"{len(values)} marks", marks=len(values), lost=lost)',
          'return "done"', "not an Outcome"),
    Fault("parameters are changed", "step", "steps.py",
          "    values = given.values or", "    given.values.append(1)\n    values = given.values or",
          "changes its parameters"),
    Fault("a value that nothing checks", "step", "steps.py",
          "    if any(not -(1 << 63)", "    if any(not -(1 << 99)", "values = .* ends in"),
    Fault("a device of any kind", "step", "steps.py",
          'ring: str = parameter(help="the ring", refers="device:pulse_ring")\n    count',
          'ring: str = parameter(help="the ring", refers="device")\n    count',
          "device of another kind"),
    Fault("a file beside the outputs", "keeping step", "steps.py",
          "    run.put(given.as_, data)\n",
          '    run.put(given.as_, data)\n    open("ring.bin", "wb").close()\n',
          "writes files of its own: ring.bin"),
    Fault("a parameter that lacks `refers`", "keeping step", "steps.py",
          'ring: str = parameter(help="the ring", refers="device:pulse_ring")\n    as_',
          'ring: str = parameter(help="the ring")\n    as_', "",
          missed="a text without `refers` may name anything"),
]  # fmt: skip

DEVICE = [
    Fault("reading empties it", "device", "steps.py",
          '        return MAGIC + STRING + b"".join(self.marks)',
          '        data, self.marks = MAGIC + STRING + b"".join(self.marks), []\n        return data',
          "its image read again|image"),
    Fault("an image that is not bytes", "device", "steps.py",
          '        return MAGIC + STRING + b"".join(self.marks)',
          '        return [MAGIC + STRING + b"".join(self.marks)]', "not bytes"),
    Fault("it cannot be closed twice", "device", "steps.py",
          "        self.marks.clear()\n", "        del self.marks\n", "closed twice"),
    Fault("it begins at random", "device", "steps.py",
          "self.time = 0", 'self.time = __import__("random").randrange(99)',
          "again|image"),
    Fault("devices share their marks", "device", "steps.py",
          "self.marks: list[bytes] = []",
          'self.marks = vars(__import__("sys")).setdefault("pulse_marks", [])',
          "while another one was used"),
    Fault("a choice that there is not", "device", "steps.py",
          'parameter("newest", help', 'parameter("latest", help', "not one of newest, oldest|is not a choice"),
    Fault("a parameter of no type", "device", "steps.py",
          "capacity: int = parameter(", "capacity: object = parameter(", "Unsupported type"),
]  # fmt: skip

MISSED = [
    Fault("a declared size is allocated", "reader", "reader.py",
          "                record = _record(kind, at, raw)\n",
          "                record = _record(kind, at, raw)\n"
          '                if record.record == "thread":\n'
          "                    bytearray(min(record.fields['tid'], 1 << 27))\n", "",
          missed="by chance only: of a hundred flipped samples few have the top bits of that field; "
          "more `examples` find it"),
    Fault("a text that is not escaped", "exporter", "lines.py",
          'name.replace(b"\\n", b"\\\\n")', "name", "",
          missed="what an output means, only its author knows: check_output() has to read it back"),
    Fault("a magic of four bytes", "reader", "plugin.py",
          SNIFF, SNIFF + "            sniff=lambda probe: Confidence(3 * (probe.head[:4] == "
          'b"PULS")),\n', "", missed="no sample begins with a part of the magic and is of another "
          "format; give foreign() one"),
    Fault("an option that does nothing", "reader", "plugin.py",
          'help="nanoseconds before time 0"', 'help="nanoseconds between marks"', "",
          missed="what an option changes, only its author knows"),
    Fault("a time of 32 bits", "reader", "reader.py",
          'return min(max(self.fields["time"] * MICROSECOND, NS_MIN), NS_MAX)',
          'return self.fields["time"] % (1 << 32) * MICROSECOND', "",
          missed="no sample has a time that large; a sample with `expected` would show it"),
    Fault("what is dropped is counted twice", "exporter", "lines.py",
          "self._dropped.get(what, 0) + count", "self._dropped.get(what, 0) + 2 * count", "",
          missed="the kit knows that something was dropped, and not how much of it counts as one"),
]  # fmt: skip

FAULTS = [*READER, *WRITER, *EXPORTER, *STEP, *DEVICE, *MISSED]

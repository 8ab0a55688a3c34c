"""Writes the generated parts of these pages from the code, so that they cannot fall behind it.

A part is between ``<!-- generated: NAME -->`` and ``<!-- end -->``. ``python docs/generate.py``
writes all of them again; with ``--check`` it changes nothing, and exits 1 where one is stale.
"""

# ruff: noqa: INP001, T201 (a script beside the pages, which says what it wrote)

from __future__ import annotations

import argparse
import functools
import importlib.util
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import click

from fxframework import hookspecs
from fxframework.cli.app import COMMANDS, EPILOG, HELP, Fxf
from fxframework.cli.render import Screen
from fxframework.cli.session import Session
from fxframework.errors import Catalogue
from fxframework.host import GROUP, Host
from fxframework.io.sink import Sink
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.schema import STANDARD_TABLES, Column, TableSchema
from fxframework.registry import LIMIT_OPTIONS, Option, parse_options
from fxframework.rules import RULES as FRAMEWORK_RULES

__all__ = ["DOCS", "bundled", "commands", "filled", "hooks", "main", "pages", "parts"]

DOCS = Path(__file__).resolve().parent
WIDTH = 100
MARKS = re.compile(r"<!-- generated: (?P<name>[^>]*?) -->\n(?P<text>.*?)<!-- end -->", re.DOTALL)
COMMAND_OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*( [a-z_]+=[A-Za-z]+)?(?![\w-])")
PLACEHOLDER = re.compile(r"<([^<>`]*)>")
TYPES = {bool: "yes or no", int: "integer", float: "number", str: "text"}
KINDS = {"code": "code", "text": "text", "bytes": "bytes", "array": "array", "?": "bool"}
NUMBERS = {"i": "int", "u": "uint", "f": "float"}


# --- What is documented --------------------------------------------------------------------------


def bundled() -> Host:
    """Return a host with the plugins of this distribution alone."""
    entries = [entry for entry in entry_points(group=GROUP) if entry.dist is not None]
    names = [entry.name for entry in entries if entry.dist.name == "fxframework"]
    return Host(environ={"FXF_PLUGINS": ",".join(names)})


def catalogues(host: Host) -> dict[str, Catalogue]:
    """Return the catalogues of findings: the framework's, and those of the formats."""
    rules_of_format = {"fxframework": FRAMEWORK_RULES}
    for reader in host.readers.values():
        if reader.rules is not None:
            rules_of_format[reader.format] = reader.rules()
    return rules_of_format


def schemas(host: Host, format: str) -> Mapping[str, TableSchema]:
    """The tables that a format fills."""
    with host.open(b"", format=format) as capture:
        return capture.schemas


def options(host: Host) -> Iterator[tuple[str, tuple[Option, ...]]]:
    """The options of every reader, writer and exporter, with whose they are."""
    for reader in host.readers.values():
        yield f"reader `{reader.format}`", reader.options
    for writer in host.writers.values():
        yield f"writer `{writer.format}`", writer.options
    for exporter in host.exporters:
        owner = f"exporter `{exporter.name}`"
        if isinstance(exporter.accepts, str):
            owner += f" of `{exporter.accepts}`"
        yield owner, exporter.options


def hooks() -> dict[str, Callable[..., Any]]:
    """The hook specifications by name, in the order of their file."""
    return {name: hook for name, hook in vars(hookspecs).items() if name.startswith("fx_")}


def signature(hook: Callable[..., Any]) -> str:
    """A hook's name with its exact arguments."""
    return f"{hook.__name__}{inspect.signature(hook)}".replace("'", "")


def commands(host: Host) -> dict[str, tuple[click.Command, str]]:
    """Every command with its help as it is on a wide terminal; ``fxf`` itself first."""
    group = Fxf(
        name="fxf", help=HELP, epilog=EPILOG, subcommand_metavar="[COMMAND] FILE...",
        context_settings={"help_option_names": ["-h", "--help"]},
    )  # fmt: skip
    terminal: dict[str, Any] = {
        "color": False,
        "terminal_width": WIDTH,
        "max_content_width": WIDTH,
    }
    group_context = click.Context(
        group, info_name="fxf", obj=Session(Screen(), host), help_option_names=["-h", "--help"],
        **terminal,
    )  # fmt: skip
    help_of_command: dict[str, tuple[click.Command, str]] = {}
    help_of_command["fxf"] = (group, group.get_help(group_context))
    for name in COMMANDS:
        command = group.get_command(group_context, name)
        assert command is not None  # noqa: S101 (it is listed)
        context = click.Context(command, parent=group_context, info_name=name, **terminal)
        help_of_command[f"fxf {name}"] = (command, command.get_help(context))
    return help_of_command


# --- Markdown ------------------------------------------------------------------------------------


def cell(text: str) -> str:
    """A text escaped for a cell of a table."""
    one_line = re.sub(r"\s+", " ", text)
    escaped = one_line.replace("``", "`").replace("|", "\\|")
    # Outside and inside of backquotes in turn: options and placeholders get some outside.
    spans = escaped.split("`")
    for number in range(0, len(spans), 2):
        with_options = COMMAND_OPTION.sub(r"`\g<0>`", spans[number])
        spans[number] = PLACEHOLDER.sub(r"`<\1>`", with_options)
    return "`".join(spans)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells as they are."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def fenced(text: str, language: str = "text") -> str:
    """A block of code."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def rule_table(rules: Catalogue) -> str:
    """A catalogue of findings."""
    head = ("code", "severity", "finding", "rule, and its section", "reference readers",
            "ours", "remedy")  # fmt: skip
    rows = []
    for rule in rules.values():
        rule_and_section = f"{cell(rule.rule)} *({cell(rule.section)})*"
        advice = [cell(text) or "–" for text in (rule.readers, rule.ours, rule.remedy)]
        code = f"`{rule.code}`"
        rows.append((code, rule.severity.word, cell(rule.title), rule_and_section, *advice))
    return table(head, rows)


def type_of(column: Column) -> str:
    """A column's type as a reader of the docs knows it: int64, not i8."""
    if column.kind in KINDS:
        return KINDS[column.kind]
    return f"{NUMBERS[column.kind[0]]}{8 * int(column.kind[1:])}"


def column_table(columns: Iterable[Column]) -> str:
    """The columns of a table."""
    rows = []
    for column in columns:
        meaning = cell(column.doc)
        if column.values:
            names = ", ".join(f"{value} `{name}`" for value, name in column.values.items())
            meaning = f"{meaning}: {names}"
        rows.append((f"`{column.name}`", type_of(column), column.unit or "–", meaning))
    return table(("column", "type", "unit", "meaning"), rows)


def standard_tables() -> str:
    """Return the tables that do not depend on the format."""
    sections = []
    for schema in STANDARD_TABLES.values():
        columns = column_table(schema.all_columns)
        sections.append(f"### `{schema.name}`\n\nA row is {cell(schema.doc)}.\n\n{columns}")
    return "\n".join(sections)


def tables_of(own: Mapping[str, TableSchema]) -> str:
    """Which standard tables a format fills, and what it adds."""
    standard = [f"`{name}`" for name in own if name in STANDARD_TABLES]
    text = f"Standard tables that are filled: {', '.join(standard)}, and `diagnostics`.\n"
    for name, schema in own.items():
        if name not in STANDARD_TABLES:
            text += f"\nA table of its own, `{name}`; a row is {cell(schema.doc)}:\n\n"
            text += column_table(schema.all_columns)
            continue
        standard_columns = {column.name for column in STANDARD_TABLES[name].all_columns}
        added = [column for column in schema.all_columns if column.name not in standard_columns]
        if added:
            text += f"\nAdded to `{name}`:\n\n{column_table(added)}"
    return text


def format_tables(host: Host, format: str) -> str:
    """Return the tables that a format fills."""
    return tables_of(schemas(host, format))


def option_table(host: Host) -> str:
    """The options of readers, writers and exporters."""
    rows = []
    for owner, owner_options in options(host):
        for option in owner_options:
            type_name = TYPES[option.type]
            name = f"`{option.name}`"
            rows.append((owner, name, type_name, default(option), cell(option.help)))
    return table(("of", "option", "type", "default", "meaning"), rows)


def _default(value: float | None) -> str:
    """The default of a limit; one that depends on the input is in its help."""
    if value is None:
        return ""
    return f"{value:,g}" if isinstance(value, float) else f"{value:,}"


def limit_table() -> str:
    """The limits, which every reader has."""
    rows = [
        (f"`{option.name}`", _default(option.default), cell(option.help))
        for option in LIMIT_OPTIONS
    ]
    return table(("limit", "default", "meaning"), rows)


def default(option: Option) -> str:
    """Return an option's default as it is written after ``-o``."""
    if option.type is bool:
        return "`yes`" if option.default else "`no`"
    if option.default in {"", None}:
        return "–"
    return f"`{option.default}`"


def hook_text() -> str:
    """Return every hook with its exact arguments and its documentation."""
    sections = []
    for name, hook in hooks().items():
        definition = fenced(f"def {signature(hook)}: ...", "python")
        sections.append(f"### `{name}`\n\n{definition}\n{docstring(hook)}")
    return "\n".join(sections)


def docstring(hook: Callable[..., Any]) -> str:
    """A docstring as Markdown."""
    text = inspect.cleandoc(hook.__doc__ or "").replace("``", "`")
    text = re.sub(r"^:param (\w+):", r"- `\1`:", text, flags=re.MULTILINE)
    text = re.sub(r"^:return:", "- returns", text, flags=re.MULTILINE)
    return f"{text}\n"


def command_text(host: Host) -> str:
    """The help of every command; what all of them take is listed once, with ``fxf``."""
    sections = []
    for name, (_, text) in commands(host).items():
        own_text = text if name == "fxf" else text.split("\nEverywhere:")[0]
        sections.append(f"### `{name}`\n\n{fenced(own_text)}")
    return "\n".join(sections)


# --- Record examples -----------------------------------------------------------------------------

THREAD = [1001, 1002]
RECORDS: tuple[dict[str, Any], ...] = (
    {"record": "metadata", "kind": "trace_info", "info_type": 0, "magic": "0x16547846"},
    {"record": "metadata", "kind": "provider_info", "id": 1, "name": "tracer"},
    {"record": "metadata", "kind": "provider_section", "id": 1},
    {"record": "metadata", "kind": "provider_event", "id": 1, "event": 0},
    {"record": "initialization", "ticks_per_second": 1_000_000_000},
    {"record": "initialization", "ticks_per_second": 1_000_000_000, "base_tick": 500,
     "base_wall_ns": 1_700_000_000_000_000_000},
    {"record": "string", "index": 1, "value": "io"},
    {"record": "thread", "index": 1, "pid": 1001, "tid": 1002},
    {"record": "event", "event": "instant", "timestamp": 1000, "thread": THREAD, "category": "io",
     "name": "woke", "args": [], "scope": "process", "refs": {"category": 1, "thread": 1}},
    {"record": "event", "event": "counter", "timestamp": 1010, "thread": THREAD, "category": "io",
     "name": "queue", "args": [{"name": "length", "type": "uint32", "value": 3}],
     "counter_id": 7, "refs": {"category": 1, "thread": 1}},
    {"record": "event", "event": "duration_begin", "timestamp": 1020, "thread": THREAD,
     "category": "io", "name": "read", "args": [
         {"name": "a", "type": "null", "value": None},
         {"name": "b", "type": "int32", "value": -1},
         {"name": "c", "type": "int64", "value": -4_294_967_297},
         {"name": "d", "type": "uint64", "value": 18_446_744_073_709_551_615},
         {"name": "e", "type": "double", "value": 0.5},
         {"name": "f", "type": "string", "value": "text"},
         {"name": "g", "type": "pointer", "value": 4096},
         {"name": "h", "type": "koid", "value": 1001},
         {"name": "i", "type": "bool", "value": True},
         {"name": "j", "type": "blob", "value": "c0ffee"}]},
    {"record": "event", "event": "duration_end", "timestamp": 1050, "thread": THREAD,
     "category": "io", "name": "read", "args": []},
    {"record": "event", "event": "duration_complete", "timestamp": 1060, "thread": THREAD,
     "category": "io", "name": "write", "args": [], "end_timestamp": 1080},
    {"record": "event", "event": "async_begin", "timestamp": 1090, "thread": THREAD,
     "category": "io", "name": "request", "args": [], "id": 9},
    {"record": "event", "event": "async_instant", "timestamp": 1091, "thread": THREAD,
     "category": "io", "name": "request", "args": [], "id": 9},
    {"record": "event", "event": "async_end", "timestamp": 1092, "thread": THREAD,
     "category": "io", "name": "request", "args": [], "id": 9},
    {"record": "event", "event": "flow_begin", "timestamp": 1093, "thread": THREAD,
     "category": "io", "name": "handoff", "args": [], "id": 10},
    {"record": "event", "event": "flow_step", "timestamp": 1094, "thread": THREAD,
     "category": "io", "name": "handoff", "args": [], "id": 10},
    {"record": "event", "event": "flow_end", "timestamp": 1095, "thread": THREAD,
     "category": "io", "name": "handoff", "args": [], "id": 10},
    {"record": "blob", "name": "notes", "blob_type": 1, "size": 5, "payload_hex": "68656c6c6f"},
    {"record": "userspace_object", "pointer": 4096, "process": 1001, "name": "buffer",
     "args": []},
    {"record": "kernel_object", "object_type": 2, "koid": 1002, "name": "main",
     "args": [{"name": "process", "type": "koid", "value": 1001}]},
    {"record": "scheduling", "kind": "context_switch", "cpu": 2, "timestamp": 1100,
     "outgoing_state": 3, "outgoing_tid": 1002, "incoming_tid": 1003, "args": []},
    {"record": "scheduling", "kind": "thread_wakeup", "cpu": 2, "timestamp": 1110,
     "waking_tid": 1002, "args": []},
    {"record": "scheduling", "kind": "legacy_context_switch", "cpu": 2, "timestamp": 1120,
     "outgoing_state": 3, "outgoing": THREAD, "incoming": [1001, 1003],
     "outgoing_priority": 16, "incoming_priority": 24},
    {"record": "log", "timestamp": 1130, "thread": THREAD, "message": "it is open"},
    {"record": "profiler", "kind": "module", "timestamp": 1140, "thread": [1001, 0],
     "module_id": 1, "name": "libc.so", "build_id": "0123abcd"},
    {"record": "profiler", "kind": "mmap", "timestamp": 1141, "thread": [1001, 0],
     "module_id": 1, "flags": 5, "start_address": 4096, "range": 8192, "vaddr": 0},
    {"record": "profiler", "kind": "backtrace", "timestamp": 1142, "thread": THREAD,
     "frames": [4100, 4200]},
    {"record": "large", "large_type": 0, "blob_format": 0, "category": "io", "name": "dump",
     "timestamp": 1150, "thread": THREAD, "args": [], "size": 3, "payload_hex": "010203"},
    {"record": "large", "large_type": 0, "blob_format": 1, "category": "io", "name": "dump",
     "size": 3, "payload_hex": "010203"},
    {"record": "unknown", "type": 14, "raw": "2e00000000000000ffffffffffffffff"},
    {"record": "padding", "nbytes": 16},
    {"record": "damaged", "code": "FXT0005", "raw": "ffff"},
)  # fmt: skip
"""One trace record of every kind: written, read again, and shown as it was read."""


LOGS: tuple[tuple[str, dict[str, Any], tuple[dict[str, Any], ...]], ...] = (
    (
        "log",
        {"suffix": True},
        (
            {"record": "log", "timestamp": 1000, "severity": 48, "tag_bits": 3, "args": [
                {"name": "pid", "type": "uint64", "value": 1001},
                {"name": "message", "type": "string", "value": "it is open"},
                {"name": "tag", "type": "string", "value": "io"},
                {"name": "a", "type": "int64", "value": -1},
                {"name": "b", "type": "double", "value": 0.5},
                {"name": "c", "type": "bool", "value": True},
                {"name": "d", "type": "null", "value": None},
                {"name": "e", "type": 7, "value": "0010000000000000"},
                {"name": "", "type": "damaged", "code": "FXL0109", "value": "2400040000000000"
                 "0000000000000000"}]},
            {"record": "attribution", "moniker": "core/io", "url": "fuchsia-pkg://io",
             "rolled_out": 0},
            {"record": "padding", "nbytes": 8},
            {"record": "damaged", "code": "FXL0004", "raw": "ffff"},
        ),
    ),
    (
        "log-legacy-stream",
        {},
        (
            {"record": "stream_header", "version": 1},
            {"record": "legacy_packet", "pid": 1001, "tid": 1002, "timestamp": 1000,
             "severity": -1, "dropped_logs": 0, "tags": ["io"], "message": "it is open"},
        ),
    ),
    (
        "log-ring",
        {},
        (
            {"record": "ring_header", "head": 56, "tail": 0},
            {"record": "ring_entry", "tag": 7, "log": {"timestamp": 1000, "severity": 48,
                                                       "tag_bits": 0, "args": []}},
            {"record": "ring_entry", "tag": 7, "payload_hex": "0102030405060708"},
            {"record": "padding", "nbytes": 65480},
        ),
    ),
)  # fmt: skip
"""A record of every kind that the formats of logs have."""


XRAY: tuple[tuple[str, dict[str, Any], tuple[dict[str, Any], ...]], ...] = (
    (
        "xray",
        {},
        (
            {"record": "file_header", "version": 5, "type": 1, "constant_tsc": True,
             "nonstop_tsc": True, "cycle_frequency": 2_596_120_000, "buffer_size": 16384},
            {"record": "buffer_extents", "bytes": 197},
            {"record": "new_buffer", "thread": 1002},
            {"record": "wall_time", "seconds": 926, "micros": 926_896},
            {"record": "pid", "process": 1001},
            {"record": "new_cpu", "cpu": 1, "tsc": 2_406_654_400_852},
            {"record": "function", "kind": "enter_arg", "function_id": 9, "delta": 0},
            {"record": "call_argument", "value": 3},
            {"record": "custom_event", "delta": 1664, "data_hex": "68656c6c6f"},
            {"record": "typed_event", "event_type": 1, "delta": 208,
             "data_hex": "0100000002000000"},
            {"record": "tsc_wrap", "tsc": 2_410_000_000_000},
            {"record": "function", "kind": "exit", "function_id": 9, "delta": 26},
            {"record": "end_of_buffer"},
            {"record": "unknown", "type": 12, "raw": "19000000000000000000000000000000"},
            {"record": "damaged", "code": "FXX0104", "raw": "0800000000000000"},
        ),
    ),
    (
        "xray",
        {},
        (
            {"record": "file_header", "version": 1, "type": 1, "constant_tsc": True,
             "nonstop_tsc": True, "cycle_frequency": 2_596_120_000, "buffer_size": 128},
            {"record": "new_buffer", "thread": 1002},
            {"record": "wall_time", "seconds": 926, "micros": 926_896},
            {"record": "new_cpu", "cpu": 1, "tsc": 2_406_654_400_852},
            {"record": "end_of_buffer"},
            {"record": "padding", "nbytes": 64},
        ),
    ),
)  # fmt: skip
"""A record of every kind that the flight data recorder has."""
BASIC: tuple[tuple[str, dict[str, Any], tuple[dict[str, Any], ...]], ...] = (
    (
        "xray-basic",
        {},
        (
            {"record": "file_header", "version": 3, "type": 0, "constant_tsc": True,
             "nonstop_tsc": True, "cycle_frequency": 2_596_120_000, "buffer_size": 0},
            {"record": "function", "kind": "enter_arg", "function_id": 9,
             "tsc": 2_406_654_400_852, "cpu": 1, "thread": 1002, "process": 1001},
            {"record": "call_argument", "function_id": 9, "thread": 1002, "process": 1001,
             "value": 3},
            {"record": "damaged", "code": "FXX0401", "raw": "ffff"},
        ),
    ),
)  # fmt: skip
"""A record of every kind that basic mode has."""


def shown(
    host: Host, format: str, records: Iterable[dict[str, Any]], reading: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Records of a format, as they come out of the bytes that they are written as."""
    writer = host.writer(format)
    sink = Sink.memory()
    rules = host.reader(format).rules
    assert rules is not None  # noqa: S101 (the format has a catalogue)
    defaults = parse_options({}, writer.options, whose="writer")
    session = writer.open(sink, defaults, Diagnostics(rules()))
    for record in records:
        session.write(record)
    session.close()
    with host.open(sink.getvalue(), format=format, options=reading) as capture:
        yield from (record.to_json() for record in capture.records())


def record_text(records: Iterable[dict[str, Any]]) -> str:
    """Examples of records, by their kind."""
    lines_of_kind: dict[str, list[str]] = {}
    for record in records:
        line = json.dumps(record, ensure_ascii=False)
        lines_of_kind.setdefault(record["record"], []).append(line)
    sections = []
    for kind, lines in lines_of_kind.items():
        examples = fenced("\n".join(lines), "json")
        sections.append(f"### `{kind}`\n\n{examples}")
    return "\n".join(sections)


def of_each_kind(
    host: Host, files: Iterable[tuple[str, dict[str, Any], tuple[dict[str, Any], ...]]]
) -> Iterator[dict[str, Any]]:
    """The first record of each kind in some files."""
    kinds: set[str] = set()
    for format, reading, records in files:
        records_of_file = list(shown(host, format, records, reading))
        for record in records_of_file:
            if record["record"] not in kinds:
                yield record
        kinds.update(record["record"] for record in records_of_file)


# --- Differences from Perfetto -------------------------------------------------------------------


def divergence_table() -> str:
    """The differences from Perfetto that the oracle's tests show, each on a trace of its own."""
    module = loaded("fxframework_divergences", DOCS.parent / "tests/oracle/divergences.py")
    rows = []
    for divergence in module.DIVERGENCES.values():
        texts = [cell(text) for text in (divergence.perfetto, divergence.ours, divergence.reason)]
        rows.append((f"`{divergence.name}`", *texts, says(divergence.says)))
    return table(("name", "Perfetto", "ours", "why", "Perfetto says"), rows)


def says(said: Mapping[str, int] | str) -> str:
    """What another reader says: the text of its error, or the names of its counters."""
    if isinstance(said, str):
        return f"error: {cell(said)}"
    return ", ".join(f"`{counter}`" for counter in said) or "–"


def loaded(name: str, path: Path) -> Any:
    """A module of a file that is in no package."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # noqa: S101 (it is a Python file)
    assert spec.loader is not None  # noqa: S101 (likewise)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


# --- Pages ---------------------------------------------------------------------------------------


def parts() -> dict[str, Callable[[], str]]:
    """Return the functions that make the generated parts, by the names of these."""
    host = bundled()
    makers: dict[str, Callable[[], str]] = {
        "tables": standard_tables,
        "options": lambda: option_table(host),
        "limits": limit_table,
        "hooks": hook_text,
        "commands": lambda: command_text(host),
        "records trace": lambda: record_text(shown(host, "trace", RECORDS, {})),
        "records log": lambda: record_text(of_each_kind(host, LOGS)),
        "records xray": lambda: record_text(of_each_kind(host, XRAY)),
        "records xray-basic": lambda: record_text(of_each_kind(host, BASIC)),
        "divergences trace": divergence_table,
    }
    # Formats that share a catalogue show it once, on the page of the first of them.
    first_with_catalogue: dict[int, str] = {}
    for format, rules in catalogues(host).items():
        first_format = first_with_catalogue.setdefault(id(rules), format)
        if first_format == format:
            makers[f"rules {format}"] = functools.partial(rule_table, rules)
        else:
            link = f"The catalogue is that of [`{first_format}`]({first_format}.md#findings).\n"
            makers[f"rules {format}"] = functools.partial(str, link)
    api = loaded("fxframework_api", DOCS / "api.py")
    for package in api.PACKAGES:
        makers[f"api {package}"] = functools.partial(api.page_of, package)
    for package in api.EXPORTS:
        for name in api.public(f"fxframework.{package}"):
            makers[f"api {package}.{name}"] = functools.partial(api.entry, package, name)
    for format in host.readers:
        makers[f"tables {format}"] = functools.partial(format_tables, host, format)
    return makers


def filled(page: str, makers: Mapping[str, Callable[[], str]]) -> str:
    """A page with its generated parts as they should be. KeyError for a part that nobody makes."""

    def fill(match: re.Match[str]) -> str:
        name = match["name"]
        return f"<!-- generated: {name} -->\n\n{makers[name]()}\n<!-- end -->"

    return MARKS.sub(fill, page)


def pages() -> list[Path]:
    """The pages."""
    return sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the parts, or check them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; 1 if one is stale")
    only_check = parser.parse_args(arguments).check
    makers = parts()
    has_stale_page = False
    for path in pages():
        old_text = path.read_text(encoding="utf-8")
        new_text = filled(old_text, makers)
        if old_text == new_text:
            continue
        page_name = path.relative_to(DOCS)
        if only_check:
            has_stale_page = True
            print(f"{page_name}: stale")
        else:
            path.write_text(new_text, encoding="utf-8")
            print(f"{page_name}: written")
    return int(has_stale_page)


if __name__ == "__main__":
    sys.exit(main())

"""llvm-xray and clang as oracles: where they are, what they say, our records in their words."""

from __future__ import annotations

import csv
import functools
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from ..programs import missing, newest

LEAST = 14
"""The oldest LLVM whose tools these tests were tried with: that of Debian 12."""
SOURCES = Path(__file__).parents[1] / "conformance" / "xray" / "sources"
TIMEOUT = 120

# --- The tools, or why there are none ------------------------------------------------------------


def llvm_xray() -> str:
    """The newest llvm-xray. Without one the test skips; with FXF_REQUIRE_ORACLES it fails."""
    tool = find_llvm_xray()
    if tool is None:
        missing("llvm-xray is not installed (Debian's package llvm)")
    return recent(tool)


def clang_with_xray() -> str:
    """The newest clang++ that links the XRay runtime. Without one as above."""
    tool = find_clang()
    if tool is None:
        missing("no clang++ here builds XRay programs (Debian's packages clang, libclang-rt-dev)")
    return recent(tool)


def recent(tool: str) -> str:
    """A tool of LLVM that is not too old for these tests; for another one as above."""
    version = version_of(tool)
    if version < LEAST:
        missing(f"{tool} is of LLVM {version}, and the tests need LLVM {LEAST} or newer")
    return tool


@functools.cache
def version_of(tool: str) -> int:
    """The version of LLVM that a tool says it is of; 0 if it says none."""
    done = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False,
                          timeout=TIMEOUT)  # fmt: skip
    found = re.search(r"version (\d+)\.", done.stdout)
    return int(found[1]) if found else 0


@functools.cache
def find_llvm_xray() -> str | None:
    """Where the newest llvm-xray is."""
    return next(iter(newest("llvm-xray")), None)


@functools.cache
def find_clang() -> str | None:
    """Where the newest clang++ is that builds a program with XRay."""
    source = "int main() { return 0; }\n"
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program"
        for tool in newest("clang++"):
            command = [tool, "-fxray-instrument", "-x", "c++", "-", "-o", str(program)]
            done = subprocess.run(
                command, input=source, capture_output=True, text=True, check=False, timeout=TIMEOUT
            )
            if done.returncode == 0 and program.exists():
                return tool
    return None


# --- What llvm-xray says -------------------------------------------------------------------------


class RefusedError(Exception):
    """llvm-xray does not take a file; what it said."""


def run(*arguments: str | Path, timeout: int = TIMEOUT) -> subprocess.CompletedProcess[bytes]:
    """A run of llvm-xray, whatever it ends with."""
    return subprocess.run(
        [llvm_xray(), *map(str, arguments)], capture_output=True, check=False, timeout=timeout
    )


def ask(*arguments: str | Path, timeout: int = TIMEOUT) -> bytes:
    """What llvm-xray prints. Raises RefusedError where it fails."""
    done = run(*arguments, timeout=timeout)
    if done.returncode:
        raise RefusedError(done.stderr.decode("utf-8", "replace"))
    return done.stdout


def fdr_dump(path: Path, *, verify: bool = False) -> bytes:
    """A line per record. With ``verify`` the order of records is checked too."""
    return ask("fdr-dump", *(["--verify"] if verify else []), path)


def accepted(path: Path) -> None:
    """RefusedError where llvm-xray does not read a log, or finds its records in a wrong order."""
    fdr_dump(path, verify=True)
    convert(path)


@attrs.frozen
class Event:
    """A record of llvm-xray's YAML. ``data`` is as it stands there."""

    tsc: int
    kind: str
    function: int
    cpu: int
    thread: int
    process: int
    args: tuple[int, ...] = ()
    type: int = 0
    data: str = ""
    name: str = ""


RECORD = re.compile(
    r"- \{ type: (?P<type>\d+), func-id: (?P<function>-?\d+)"
    r", function: (?P<name>'(?:[^']|'')*'|\S+?)"
    r"(?:, args: \[ (?P<args>[\d, ]*) \])?(?:, cpu: (?P<cpu>\d+))?(?:, thread: (?P<thread>\d+))?"
    r"(?:, process: (?P<process>\d+))?, kind: (?P<kind>[a-z-]+)(?:, tsc: (?P<tsc>\d+))?"
    r"(?:, data: (?P<data>.*))? \}",
    re.DOTALL,
)
HEADER = re.compile(r"^  ([a-z-]+): +(\w+)$", re.MULTILINE)


@attrs.frozen
class Converted:
    """llvm-xray's YAML, taken apart."""

    header: Mapping[str, str]
    events: tuple[Event, ...]


def convert(path: Path, *options: str | Path) -> Converted:
    """The log's events in llvm-xray's order of time. Raises RefusedError."""
    return parse_yaml(ask("convert", "-f", "yaml", *options, path).decode("utf-8", "replace"))


def parse_yaml(text: str) -> Converted:
    """Take llvm-xray's YAML apart; AssertionError for a line that it does not write so."""
    head, _, body = text.partition("records:")
    header = dict(HEADER.findall(head))
    events = []
    for part in re.split(r"\n  (?=- \{ type: )", body)[1:]:
        found = RECORD.match(part)
        assert found is not None, part
        given = found.groupdict()
        args = tuple(int(arg) for arg in (given["args"] or "").split(",") if arg.strip())
        numbers = {
            key: int(given[key] or 0)
            for key in ("type", "function", "cpu", "thread", "process", "tsc")
        }
        name = unquoted(given["name"])
        data = unquoted((given["data"] or "").strip())
        events.append(Event(**numbers, kind=given["kind"], args=args, name=name, data=data))
    return Converted(header, tuple(events))


def unquoted(text: str) -> str:
    """A scalar without single quotes; double ones stay."""
    return text[1:-1].replace("''", "'") if text.startswith("'") else text


def account(path: Path, *options: str | Path) -> list[list[str]]:
    """Lines of ``account -f csv -k -d`` as cells; without its header."""
    text = ask("account", "-f", "csv", "-k", "-d", *options, path).decode()
    return list(csv.reader(text.splitlines()))[1:]


EDGE = re.compile(r'^F(\d+) -> F(\d+) \[label="([^"]*)"', re.MULTILINE)


def graph(path: Path, label: str, *options: str | Path) -> dict[tuple[int, int], str]:
    """The label of each edge between functions, 0 being the root, by ``graph -k -d``."""
    text = ask("graph", "-k", "-d", "-e", label, *options, path).decode()
    return {(int(caller), int(callee)): words for caller, callee, words in EDGE.findall(text)}


FLAME = re.compile(r"^thread_(\d+)((?:;[^;]*)*); (\d+)$")


def flame(path: Path, of: str, *options: str | Path) -> dict[tuple[int, tuple[str, ...]], int]:
    """Inclusive ticks (``time``) or calls (``count``) by thread and path of names."""
    text = ask(
        "stack", "-k", "-all-stacks", "-stack-format=flame", f"-aggregation-type={of}",
        *options, path,
    ).decode()  # fmt: skip
    lines: dict[tuple[int, tuple[str, ...]], int] = {}
    for line in text.splitlines():
        found = FLAME.match(line)
        if found is not None:
            thread, names, value = found.groups()
            lines[int(thread), tuple(names.split(";")[1:])] = int(value)
    return lines


def spelled(text: str) -> str:
    """Demangled names as newer LLVMs spell them: older ones put a space between two `>`."""
    while "> >" in text:
        text = text.replace("> >", ">>")
    return text


def extract(path: Path) -> str:
    """The instrumentation map of a program, as YAML."""
    return ask("extract", "-symbolize", path).decode()


# --- Our records in llvm-xray's words ------------------------------------------------------------

KINDS = {
    "enter": "Enter",
    "exit": "Exit",
    "tail_exit": "Tail Exit",
    "enter_arg": "Enter With Arg",
}
EVENT_DELTA_VERSION = 5
EVENT_CPU_VERSION = 4
BASIC_PID_VERSION = 3
NO_CPU = 0xFFFF
"""In our tables: not known."""


def dump(records: Iterable[Mapping[str, Any]]) -> bytes:
    """Records of the flight data recorder, as ``fdr-dump`` says them.

    Padding of version 1 has no line here: llvm-xray takes it for records.
    """
    version = 0
    lines = []
    for record in records:
        if record["record"] == "file_header":
            version = record["version"]
        elif record["record"] != "padding":
            lines.append(line(record, version))
    return b"".join(lines)


def line(record: Mapping[str, Any], version: int) -> bytes:
    """One line of ``fdr-dump``, with its end. KeyError for what llvm-xray refuses."""
    kind = record["record"]
    if kind in {"custom_event", "typed_event"}:
        return event_line(record, version)
    words = {
        "buffer_extents": lambda: f"Buffer: size = {record['bytes']} bytes",
        "new_buffer": lambda: f"Thread ID: {record['thread']}",
        "wall_time": lambda: f"Wall Time: seconds = {record['seconds']}.{record['micros']:06d}",
        "pid": lambda: f"PID: {record['process']}",
        "new_cpu": lambda: f"CPU: id = {record['cpu']}, tsc = {record['tsc']}",
        "tsc_wrap": lambda: f"TSC Wrap: base = {record['tsc']}",
        "function": lambda: (
            f"Function {KINDS[record['kind']]}: #{record['function_id']} delta = +{record['delta']}"
        ),
        "call_argument": lambda: (
            f"Call Argument: data = {record['value']} (hex = {record['value']:#x})"
        ),
        "end_of_buffer": lambda: "End of Buffer",
    }[kind]()
    return f"<{words}>\n".encode()


def event_line(record: Mapping[str, Any], version: int) -> bytes:
    """The line of a custom or typed event, with what it takes for their fields."""
    payload = bytes.fromhex(record["data_hex"])
    size = f"size = {len(payload)}, data = '"
    padding = bytes.fromhex(record.get("padding_hex", "")).ljust(15, b"\0")
    if record["record"] == "typed_event":
        delta, event_type = record.get("delta"), record["event_type"]
        if version < EVENT_DELTA_VERSION:
            # It knows the layout of version 5 alone.
            tsc = record["tsc"].to_bytes(8, "little")
            delta = int.from_bytes(tsc[:4], "little", signed=True)
            event_type = int.from_bytes(tsc[4:6], "little")
        words = f"Typed Event: delta = +{delta}, type = {event_type}, "
        return f"<{words}{size}".encode() + payload + b"'\n"
    if version >= EVENT_DELTA_VERSION:
        words = f"Custom Event: delta = +{record['delta']}, "
    else:
        # Before version 4 it takes padding for a CPU.
        early = int.from_bytes(padding[:2], "little")
        cpu = record["cpu"] if version == EVENT_CPU_VERSION else early
        words = f"Custom Event: tsc = {record['tsc']}, cpu = {cpu}, "
    return f"<{words}{size}".encode() + payload + b"'>\n"


# --- Programs ------------------------------------------------------------------------------------


def build(source: Path, program: Path, *options: str) -> Path:
    """Build an instrumented program. Fails the test where the compiler does not take it."""
    command = [
        clang_with_xray(), "-O2", "-g1", "-std=c++17", "-pthread", "-fxray-instrument",
        f"-I{SOURCES}", *options, str(source), "-o", str(program),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    return program


def record(
    program: Path, folder: Path, *arguments: str, options: Mapping[str, str] | None = None
) -> list[Path]:
    """Run an instrumented program, and give the logs that it wrote, oldest first.

    ``options`` become XRAY_OPTIONS, beside the place of the logs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    given = {"xray_logfile_base": "log.", **(options or {})}
    words = " ".join(f"{key}={value}" for key, value in given.items())
    environ = {**os.environ, "XRAY_OPTIONS": words}
    done = subprocess.run(
        [str(program), *arguments],
        cwd=folder, env=environ, capture_output=True, check=False, timeout=TIMEOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    return sorted(folder.glob("log.*"), key=lambda path: path.stat().st_mtime_ns)

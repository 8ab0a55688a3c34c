"""Captures of every format, for tests that go through all of them."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

from fxframework.host import Host, default_host
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.registry import parse_options

from .plugins.log import logs as hand

ROOT = Path(__file__).resolve().parents[1]
SCENARIOS = ROOT / "examples" / "scenarios"
CONFORMANCE = ROOT / "tests" / "conformance"
FILES = (
    SCENARIOS / "boot.golden" / "boot.fxt",
    SCENARIOS / "circular_wrap.golden" / "ring.tbuf",
    SCENARIOS / "crash_mid_record.golden" / "app.tbuf",
    SCENARIOS / "inspect.golden" / "busy.inspect",
    SCENARIOS / "logs.golden" / "logs.fxlog",
    SCENARIOS / "xray.golden" / "calls.xray",
    CONFORMANCE / "xray" / "basic3-mt-clang16.xray",
    CONFORMANCE / "xray" / "fdr5-mt-clang16.xray",
)
SHORT_XRAY = CONFORMANCE / "xray" / "fdr5-thr50us-clang16.xray"
MADE = {"logs.fxlog": ("log-legacy-stream",), "boot.fxt": ("log", "trace")}
"""Formats that are made of a file's tables, so that those without a file have one, too."""
SAMPLE_BYTES = 6_000
"""Of what a reader makes as a typical file."""


def export_bytes(capture: Capture, name: str, tmp_path: Path, **options: Any) -> bytes:
    """What an exporter makes of a capture."""
    host = default_host()
    exporter = host.exporter(name, format=capture.format, tables=capture.tables)
    out = tmp_path / f"out-{name}"
    with Sink.open(out, force=True) as sink:
        session = exporter.open(sink, parse_options(options, exporter.options, whose=name))
        session.write(capture)
        session.close()
    return out.read_bytes()


def made(host: Host, path: Path, format: str, folder: Path) -> bytes:
    out = folder / f"{path.stem}.{format}"
    writer = host.writer(format)
    assert writer.merge is not None
    with host.open(path) as capture, Sink.open(out, force=True) as sink:
        session = writer.merge(sink, parse_options({}, writer.options, whose=format))
        session.write(capture)
        session.close()
    return out.read_bytes()


@functools.cache
def samples() -> dict[str, tuple[str | None, bytes]]:
    """Captures by a name: their format, where it cannot be detected, and their bytes."""
    host = default_host()
    captures: dict[str, tuple[str | None, bytes]] = {}
    for path in FILES:
        captures[path.name] = (None, path.read_bytes())
    for reader in host.readers.values():
        if reader.sample is not None:
            data = reader.sample(SAMPLE_BYTES)
            captures[f"sample of {reader.format}"] = (reader.format, data)
    with tempfile.TemporaryDirectory() as folder:
        for path in FILES:
            for format in MADE.get(path.name, ()):
                data = made(host, path, format, Path(folder))
                captures[f"{path.name} as {format}"] = (format, data)
        with host.open(SHORT_XRAY) as capture:
            data = export_bytes(capture, "llvm-yaml", Path(folder))
        captures[f"{SHORT_XRAY.name} as llvm-yaml"] = ("llvm-yaml", data)
    entries = [hand.entry(hand.manifest(7, "core/net", "fuchsia-pkg://net"), tag=7)]
    for number in range(6):
        log = hand.text_log(f"line {number}", time=number, severity=0x10 * number)
        entries.append(hand.entry(log))
    captures["a ring"] = ("log-ring", hand.ring(entries))
    captures["a packet"] = ("log-legacy", hand.packet("hello", "one", "two"))
    return captures


@functools.cache
def one_of_each() -> list[str]:
    """The names of captures of ``samples``, one of each format."""
    names: dict[str, str] = {}
    for name, (format, data) in samples().items():
        with default_host().open(data, format=format) as capture:
            names.setdefault(capture.format, name)
    return list(names.values())

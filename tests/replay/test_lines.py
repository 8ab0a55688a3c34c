"""The lines of a scenario's values, as messages name them; devices of plugins."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fxframework import hookimpl
from fxframework.exporters import plugin as exporters
from fxframework.host import Host
from fxframework.registry import DeviceKind
from fxframework.replay import parse, replay
from fxframework.replay import plugin as builtin
from fxframework.replay.lines import lines_of

from ..cases import cases

ROOT = Path(__file__).resolve().parents[2]
NESTED = """a.b.c = [1, [2,
3], {d = 4, e = [
5]}]"""
TABLES = """[a.'b c']
d = '''
x = 1'''
[[e]]
[e.f]
g = 1
[[e]]
g = 2
[[e.h]]
i = 1"""
ODD = ("a = 1 # b = 2", "a = 1979-05-27T07:32:00Z\nb = { }\nc = []\nd = +inf", "[", "a = [", "]]",
       "a = {b =", 'a = "', "= 1", "", "\n\n")  # fmt: skip


def paths(value: Any, where: str = "") -> Iterator[str]:
    """The path of everything in a document."""
    if where:
        yield where
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from paths(entry, f"{where}.{key}" if where else key)
    if isinstance(value, list):
        for number, entry in enumerate(value):
            yield from paths(entry, f"{where}[{number}]")


def test_every_path_of_every_scenario_has_the_line_with_its_key() -> None:
    seen = 0
    for path in sorted((ROOT / "examples" / "scenarios").glob("*.toml")):
        text = path.read_text("utf-8")
        lines, rows = lines_of(text), text.splitlines()
        for where in paths(tomllib.loads(text)):
            if where in {"device", "step"}:  # which have no header of their own
                continue
            assert where in lines, (path.name, where)
            key = re.search(r"([A-Za-z0-9_-]+)$", where)
            assert key is None or key[1] in rows[lines[where] - 1], (path.name, where)
            seen += 1
    assert seen > 300


@cases("text", [NESTED, TABLES, *ODD])
def test_lines_of_any_text(text: str) -> None:
    assert all(1 <= line <= text.count("\n") + 1 for line in lines_of(text).values())


def test_lines_within_values_and_tables() -> None:
    lines = lines_of(NESTED)
    assert (lines["a.b.c"], lines["a.b.c[1][1]"], lines["a.b.c[2].e[0]"]) == (1, 2, 3)
    lines = lines_of(TABLES)
    assert (lines["e[1].g"], lines["e[1].h[0].i"], lines["a.b c"], lines["e[0].f"]) == (8, 10, 1, 5)
    assert "a.b c.x" not in lines


# --- devices of plugins --------------------------------------------------------------------------


class Box:
    """A device of a plugin, which holds bytes."""

    def image(self) -> bytes:
        return b"what it holds"


class Plugin:
    @hookimpl
    def fx_devices(self) -> list[DeviceKind]:
        def broken(*_: Any) -> Any:
            raise OSError("no such thing")

        return [
            DeviceKind(name="box", title="", open=lambda *_: Box()),
            DeviceKind(name="broken", title="", open=broken),
        ]


@pytest.fixture
def mine() -> Host:
    host = Host(discover=False)
    host.register(Plugin(), name="mine", distribution="mine")
    host.register(builtin, name="replay", distribution="mine")
    host.register(exporters, name="exporters", distribution="mine")
    return host


def scenario(*devices: str) -> str:
    declared = [
        f'[device.{name}]\nkind = "{kind}"\n' for name, kind in zip("abc", devices, strict=False)
    ]
    return (
        '[scenario]\nname = "x"\n' + "".join(declared) + '[[step]]\ndo = "capture.decode"\n'
        'from = "a"\nas = "c"\nformat = "records"\n'
    )


def test_a_device_of_a_plugin_gives_its_bytes(mine: Host) -> None:
    report = replay(parse(scenario("box"), mine), host=mine)
    assert report.ok, report.to_text()
    assert report.steps[0].facts["format"] == "records"


def test_every_device_that_cannot_be_opened_is_named(mine: Host) -> None:
    report = replay(parse(scenario("broken", "box", "broken"), mine), host=mine)
    assert [failure.do for failure in report.failures] == ["device.a", "device.c"]

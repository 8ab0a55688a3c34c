"""Steps of scenarios that write Inspect, and the example scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import fx_emulator.plugin
import fx_inspect.plugin
from fxframework.exporters import plugin as exporters
from fxframework.host import Host
from fxframework.replay import Report, ScenarioError, parse, replay
from fxframework.replay import plugin as steps

from ...cases import cases
from .trees import read, shown

EXAMPLE = Path(__file__).parents[3] / "examples" / "scenarios" / "inspect.toml"
HEAD = """
[scenario]
name = "test"
[device.vmo]
kind = "vmo"
size = 4096
resizable = true
"""


@pytest.fixture(scope="module")
def host() -> Host:
    host = Host(discover=False)
    for name, plugin in (
        ("exporters", exporters),
        ("replay", steps),
        ("emulator", fx_emulator.plugin),
        ("inspect", fx_inspect.plugin),
    ):
        host.register(plugin, name=name, distribution="fxframework")
    assert not host.failures
    return host


@pytest.fixture
def run(host: Host, tmp_path: Path) -> Callable[..., Report]:
    """Runs steps, each as TOML without its head, on one VMO."""

    def run(steps: Iterable[str]) -> Report:
        path = tmp_path / "test.toml"
        path.write_text(HEAD + "".join(f"[[step]]\n{step}\n" for step in steps))
        return replay(path, host=host, out=tmp_path / "out")

    return run


def step(do: str, path: str | None = None, **given: Any) -> str:
    def toml(value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, dict):
            return "{ " + ", ".join(f"{key} = {toml(each)}" for key, each in value.items()) + " }"
        if isinstance(value, list):
            return "[" + ", ".join(map(toml, value)) + "]"
        return f'"{value}"' if isinstance(value, str) else repr(value)

    parameters = {"device": "vmo"} | ({} if path is None else {"path": path}) | given
    lines = [f"{key.rstrip('_')} = {toml(value)}" for key, value in parameters.items()]
    return "\n".join([f'do = "inspect.{do}"', *lines])


def result(report: Report, tmp_path: Path) -> dict[str, Any]:
    assert report.ok, report
    tree, findings = read((tmp_path / "out" / "vmo.inspect").read_bytes())
    assert findings == []
    return shown(tree)


SNAPSHOT = step("snapshot", as_="vmo.inspect")


def test_every_kind_of_value(run: Callable[..., Report], tmp_path: Path) -> None:
    report = run(
        [
            step("start", max_size=65536),
            step("create", "node"),
            step("create", "node/int", value=-5),
            step("create", "node/uint", value=5, kind="uint"),
            step("create", "node/double", value=0.5),
            step("create", "node/bool", value=True),
            step("create", "node/string", value="text"),
            step("create", "node/bytes", value={"hex": "00ff"}),
            step("create", "array", value=[1, 2, 3]),
            step("create", "texts", value=["a", "b"]),
            step("create", "counts", value=[0, 10, 3], kind="uint_linear_histogram"),
            step("set", "node/string", value="other"),
            step("set", "array", slot=2, value=-3),
            step("add", "node/int", by=-2),
            step("add", "node/uint"),
            step("add", "array", by=7, slot=0),
            step("insert", "counts", value=15, count=4),
            step("create", "lazy", link="vmo", disposition="inline"),
            step("move", "array", to="node"),
            step("delete", "texts"),
            SNAPSHOT,
        ]
    )
    assert result(report, tmp_path) == {
        "name": "root",
        "properties": [
            {
                "name": "counts",
                "uint_linear_histogram": {
                    "floor": 0, "step": 10, "size": 5, "counts": [0, 0, 4, 0, 0]
                },
            }
        ],
        "children": [
            {
                "name": "node",
                "properties": [
                    {"name": "int", "int": -7},
                    {"name": "uint", "uint": 6},
                    {"name": "double", "double": 0.5},
                    {"name": "bool", "bool": True},
                    {"name": "string", "string": "other"},
                    {"name": "bytes", "bytes_hex": "00ff"},
                    {"name": "array", "int_array": [8, 2, -3]},
                ],
                "children": [],
            }
        ],
        "links": [{"name": "lazy", "content": "lazy-0", "disposition": "inline"}],
    }  # fmt: skip


def test_what_was_moved_has_another_path(run: Callable[..., Report], tmp_path: Path) -> None:
    report = run(
        [
            *(step("create", path) for path in ("a", "a/b", "a/b/c", "ab")),
            step("move", "a/b", to=""),
            step("create", "b/c/value", value=1),
            step("move", "b/c", to="ab"),
            step("set", "ab/c/value", value=2),
            step("delete", "a"),
            SNAPSHOT,
        ]
    )
    found = {each["name"]: each["children"] for each in result(report, tmp_path)["children"]}
    assert found == {
        "ab": [{"name": "c", "properties": [{"name": "value", "int": 2}], "children": []}],
        "b": [],
    }


def test_nobody_reads_within_a_transaction(run: Callable[..., Report]) -> None:
    report = run([step("begin"), step("create", "a", value=1), SNAPSHOT, step("end")])
    assert not report.ok
    assert "being changed" in str(report.to_json())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (step("set", "nod", value=1), "did you mean"),
        (step("create", "node", value=1), "'node' exists already"),
        (step("create", "node/int/x", value=1), "is not a node"),
        (step("create", "x", kind="uint"), "a value is needed"),
        (step("create", "x", kind="uint", value="text"), "a uint must be a whole number"),
        (step("create", "x", kind="int_linear_histogram", value=[1]), "is not a value of"),
        (step("insert", "node/int", value=1), "has no insert_multiple"),
        (step("set", "node/int", value=1, slot=3), "needs other arguments"),
        (step("move", "node", to="node/int"), "is not a node"),
        (step("end"), "no transaction is open"),
        (step("start"), "already"),
    ],
)
def test_what_makes_no_sense_ends_the_scenario(
    run: Callable[..., Report], wrong: str, message: str
) -> None:
    report = run([step("create", "node"), step("create", "node/int", value=1), wrong])
    assert not report.ok
    assert message in str(report.to_json()) + str(report)


def test_scripts_are_checked_before_they_run(host: Host) -> None:
    script = 'script = [{ create = "a", valve = 1 }, { set = "b" }, { loop = 2 }]'
    text = f'{HEAD}[[step]]\ndo = "inspect.thread"\ndevice = "vmo"\nprocess = "p"\nthread = "t"\n'
    with pytest.raises(ScenarioError) as caught:
        parse(text + script, host)
    assert len(caught.value.faults) == 3


@cases("seed", [None, 99])
def test_the_example(host: Host, tmp_path: Path, seed: int | None) -> None:
    report = replay(EXAMPLE, host=host, out=tmp_path / "out", seed=seed)
    assert report.ok, report
    tree, _ = read((tmp_path / "out" / "last.inspect").read_bytes())
    assert {each.name: each.value for each in tree.root.properties}["state"] == "stopped"


@cases(
    ("step", "why"),
    [
        ('do = "inspect.delete"\ndevice = "vmo"\npath = ""', "the root cannot be deleted"),
        ('do = "inspect.move"\ndevice = "vmo"\npath = ""\nto = "a"', "root"),
    ],
)
def test_the_root_stays(host: Host, tmp_path: Path, step: str, why: str) -> None:
    make = '[[step]]\ndo = "inspect.create"\ndevice = "vmo"\npath = "a"\n'
    report = replay(parse(f"{HEAD}{make}[[step]]\n{step}\n", host), host=host)
    assert [each.status for each in report.steps] == ["ok", "failed"]
    assert why in report.steps[1].message


def test_what_was_deleted_can_be_made_anew(host: Host) -> None:
    steps = [
        ("create", "a"),
        ("create", "a/b"),
        ("delete", "a"),
        ("create", "a"),
        ("create", "a/b"),
    ]
    text = "".join(
        f'[[step]]\ndo = "inspect.{do}"\ndevice = "vmo"\npath = "{path}"\n' for do, path in steps
    )
    assert replay(parse(HEAD + text, host), host=host).ok


def test_rounds_are_texts_where_texts_belong(run: Callable[..., Report], tmp_path: Path) -> None:
    body = [
        {"create": "n{i}", "value": "{i}"},
        {"create": "s{i}", "value": "{i}", "kind": "string"},
        {"create": "t{i}", "value": ["{i}", "x"], "kind": "string_array"},
        {"set": "text", "value": "{i}"},
        {"set": "texts", "value": "{i}", "slot": 1},
    ]
    script = [{"loop": 2, "as": "i", "body": body}]
    report = run(
        [
            step("create", "text", value="a"),
            step("create", "texts", value=["a", "b"]),
            step("thread", process="p", thread="t", script=script),
            'do = "target.run"',
            SNAPSHOT,
        ]
    )
    properties = result(report, tmp_path)["properties"]
    found = {name: value for each in properties for name, value in [each.values()]}
    assert found == {
        "text": "1", "texts": ["a", "1"], "n0": 0, "n1": 1, "s0": "0", "s1": "1",
        "t0": ["0", "x"], "t1": ["1", "x"],
    }  # fmt: skip


@pytest.mark.parametrize("action", [{"add": "n", "by": "many"}, {"insert": "h", "value": "many"}])
def test_amounts_of_threads_are_numbers(run: Callable[..., Report], action: dict[str, Any]) -> None:
    report = run(
        [
            step("create", "n", value=1),
            step("create", "h", value=[0, 10, 3], kind="int_linear_histogram"),
            step("thread", process="p", thread="t", script=[action]),
            'do = "target.run"',
        ]
    )
    assert "'many' is not a number" in report.steps[-1].message


def test_values_without_room_are_told(run: Callable[..., Report]) -> None:
    report = run(
        [
            step("start", max_size=4096),
            step("create", "a", value="x" * 9000),
            step("create", "b", value=1),
            step("set", "a", value="y"),
        ]
    )
    facts = [dict(each.facts) for each in report.steps]
    assert facts[1]["failed_allocations"] > 0
    assert facts[2:] == [{}, {"failed_allocations": 0, "exists": False}]

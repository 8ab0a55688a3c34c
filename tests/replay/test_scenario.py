"""Scenarios are understood as a whole before anything runs; what is wrong is told at once."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxframework import hookimpl
from fxframework.errors import ExitCode, UnreadableError
from fxframework.host import Host
from fxframework.kit.steps import Duration, nanoseconds, output_fault, parameter
from fxframework.registry import DeviceKind, StepKind
from fxframework.replay import ScenarioError, json_schema, load, parse
from fxframework.replay.scenario import _ScenarioReader
from fxframework.replay.schema import table_schema
from fxframework.testing.cli import run_cli

from ..cases import cases

Faults = Callable[..., dict[str, str]]
RUN = '[[step]]\ndo = "target.run"\n'
VMO = '[device.m]\nkind = "vmo"\n'
PROVIDER = '[device.app]\nkind = "trace_provider"\n'


def thread(script: str) -> str:
    """A scenario whose thread does this."""
    return (
        f'{PROVIDER}[[step]]\ndo = "trace.thread"\nprovider = "app"\nprocess = "p"\n'
        f'thread = "t"\nscript = {script}\n'
    )


# --- What is wrong -------------------------------------------------------------------------------


@cases(
    ("text", "path", "message"),
    [
        (RUN + "colour = 1\n", "step[0].colour", "no such parameter"),
        (RUN + "crashs = 1\n", "step[0].crashs", "did you mean 'crashes'?"),
        (RUN + "for = true\n", "step[0].for", "a duration"),
        (RUN + 'for = "2 years"\n', "step[0].for", "a duration"),
        (RUN + 'for = "0.3ns"\n', "step[0].for", "a duration"),
        (RUN + 'for = "18446744073709551616ns"\n', "step[0].for", "63 bits of nanoseconds"),
        (RUN + 'for = "-1s"\n', "step[0].for", "0 or more"),
        (RUN + "budget = 0\n", "step[0].budget", "1 or more"),
        (RUN + "crashes = 1.0\n", "step[0].crashes", "is 1.0, not an integer"),
        (RUN + 'crashes = "1"\n', "step[0].crashes", "is '1', not an integer"),
        (RUN + "for = 1\nuntil = 2\n", "step[0]", "exclude each other"),
        ('[[step]]\ndo = "target.rum"\n', "step[0].do", "did you mean 'target.run'?"),
        ("[[step]]\ndo = 1\n", "step[0].do", "is 1, not a string"),
        ("[[step]]\nfor = 1\n", "step[0].do", "is missing"),
        ("step = [1]\n", "step[0]", "is 1, not a table"),
        ('step = "x"\n', "step", "is 'x', not tables [[step]]"),
        ("", "step", "needs at least one"),
        ('[[step]]\ndo = "target.suspend"\n', "step[0].for", "is missing: for how long"),
        ("[stepp]\n" + RUN, "stepp", "did you mean 'step'?"),
        ('[device.x]\nkind = "trace_provide"\n' + RUN, "device.x.kind", "'trace_provider'?"),
        ("[device.x]\n" + RUN, "device.x.kind", "is missing"),
        ("[device]\nx = 1\n" + RUN, "device.x", "is 1, not a table"),
        ('device = "x"\n' + RUN, "device", "not tables [device.NAME]"),
        ('[device.x]\nkind = "target"\n' + RUN, "device.x", "the table [target]"),
        ('[device.target]\nkind = "vmo"\n' + RUN, "device.target", "the table [target]"),
        (PROVIDER + 'mode = "circle"\n' + RUN, "device.app.mode", "did you mean 'circular'?"),
        (PROVIDER + "size = 0\n" + RUN, "device.app.size", "4096 or more"),
        (PROVIDER + "size = 5000\n" + RUN, "device.app", "multiple of 4096 bytes"),
        ("[target]\ncpus = 2\nnodes = [1]\n" + RUN, "target", "1 nodes for 2 CPUs"),
        (thread("[]") + "priority = 32\n", "step[0].priority", "31 or less"),
        (thread("[{ blob = 'b', hex = 'x' }]"), "step[0].script[0]", "hex"),
        (
            PROVIDER + '[[step]]\ndo = "fault.bit_flip"\ndevice = "app"\nbit = 1\n',
            "step[0]",
            "`store`, `offset`",
        ),
        ("[target]\ncpu = 2\n" + RUN, "target.cpu", "did you mean 'cpus'?"),
        ("[target]\noffsets = [1, 'x']\n" + RUN, "target.offsets[1]", "not an integer"),
        ("[target]\noffsets = 3\n" + RUN, "target.offsets", "not a list"),
        ("target = 3\n" + RUN, "target", "is 3, not a table"),
        (thread("3"), "step[0].script", "is 3, not a list"),
        (thread("[3]"), "step[0].script[0]", "is 3, not a table"),
        (thread("[{ slize = 'x' }]"), "step[0].script[0]", "did you mean 'slice'?"),
        (thread("[{ run = 1, sleep = 2 }]"), "step[0].script[0]", "both 'run' and 'sleep'"),
        (thread("[{ loop = 1 }]"), "step[0].script[0].body", "is missing"),
        (
            thread("[{ loop = 1, body = [{ run = 1 }, { instant = 'x', args = { n = [] } }] }]"),
            "step[0].script[0].body[1].args.n",
            "not a value",
        ),
        (thread("[{ flow = 'start', name = 'f', id = 1 }]"), "step[0].script[0].flow", "begin"),
        (thread("[{ flow = 'end', name = 'f', id = 1.5 }]"), "step[0].script[0].id", "or a string"),
        (
            '[[step]]\ndo = "target.snapshot"\ndevice = "x"\nas = "a"\n',
            "step[0].device",
            "there is no device 'x' at this step",
        ),
        (
            '[[step]]\ndo = "capture.decode"\nfrom = "x.fxt"\nas = "a"\n',
            "step[0].from",
            "there is no output or device 'x.fxt'",
        ),
        (
            '[[step]]\ndo = "capture.expect"\ncapture = "a"\n',
            "step[0].capture",
            "there is no capture 'a'",
        ),
        (
            '[[step]]\ndo = "target.archive"\nas = "../a"\n',
            "step[0].as",
            "within the output folder",
        ),
        (
            '[[step]]\ndo = "target.archive"\nas = "a"\n' * 2,
            "step[1].as",
            "the output 'a' already exists",
        ),
        (
            "".join(f'[[step]]\ndo = "target.archive"\nas = "{name}"\n' for name in ("a/b", "a")),
            "step[1].as",
            "'a' and 'a/b': a file is not a folder",
        ),
        ('[[step]]\ndo = "target.archive"\nas = ""\n', "step[0].as", "within the output folder"),
        (
            PROVIDER + '[[step]]\ndo = "fault.bit_flip"\ndevice = "app"\nbit = 1\noffset = 12\n',
            "step[0]",
            "must be a multiple of 8",
        ),
        ("[target]\ncpus = 4097\n" + RUN, "target.cpus", "4096 or less"),
        ("[target]\ncpus = 2\nnodes = [0, -1]\n" + RUN, "target.nodes[1]", "0 or more"),
        (VMO + "size = 4_294_967_297\n" + RUN, "device.m.size", "4294967296 or less"),
        (
            VMO + '[[step]]\ndo = "inspect.start"\ndevice = "m"\nversion = 3\n',
            "step[0].version",
            "2 or less",
        ),
        (
            VMO + '[[step]]\ndo = "inspect.start"\ndevice = "m"\nmax_size = 134_217_729\n',
            "step[0].max_size",
            "134217728 or less",
        ),
        (
            VMO + '[[step]]\ndo = "xray.start"\nrecorder = "m"\nbuffer_size = 127\n',
            "step[0].buffer_size",
            "128 or more",
        ),
        *(
            (f'[[step]]\ndo = "cpu.pstate"\ncpu = 0\nratio = {ratio}\n', "step[0]", "0.001 or more")
            for ratio in ("0", "0.0009", "nan", "inf")
        ),
        (
            '[[step]]\ndo = "trace.replay"\ncapture = "none.fxt"\nas = "a"\n',
            "step[0].capture",
            "no file 'none.fxt' beside the scenario",
        ),
        (
            PROVIDER + '[[step]]\ndo = "capture.decode"\nfrom = "app"\nas = "a"\n[[step]]\n'
            'do = "capture.expect"\ncapture = "a"\nrows = 1\n',
            "step[1]",
            "name it with table",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_path(
    faults: Faults, text: str, path: str, message: str
) -> None:
    found = faults(text)
    assert list(found) == [path]
    assert message in found[path]


MEMORIES = {
    "trace": ("trace_provider", "provider"), "xray": ("vmo", "recorder"),
    "log": ("log_socket", "socket"),
}  # fmt: skip
LOOP = "[{ loop = 3, as = 'i', body = [%s] }]"
MOST_ID = (1 << 64) - 1
EDGES = [
    *(("xray", f"{{ {what} = {{}} }}", what, 0, (1 << 28) - 1)
      for what in ("call", "enter", "exit", "tail_exit")),
    ("xray", "{ call = 1, args = [{}] }", "args[0]", 0, MOST_ID),
    ("xray", "{ enter = 1, args = [{}] }", "args[0]", 0, MOST_ID),
    ("xray", "{ typed_event = {}, data = 'x' }", "typed_event", 0, (1 << 16) - 1),
    ("xray", "{ migrate = {} }", "migrate", -1, 1),
    ("trace", "{ migrate = {} }", "migrate", -1, 1),
    ("log", "{ migrate = {} }", "migrate", -1, 1),
    ("trace", "{ flow = 'begin', name = 'f', id = {} }", "id", 0, MOST_ID),
    ("trace", "{ async = 'begin', name = 'f', id = {} }", "id", 0, MOST_ID),
    ("trace", "{ counter = 'c', series = { v = 1 }, id = {} }", "id", 0, MOST_ID),
    *(("trace", f"{{ instant = 'a', args = {{ n = {{ {kind} = {{}} }} }} }}", "args.n", least, most)
      for kind, least, most in (
          ("uint64", 0, MOST_ID), ("koid", 0, MOST_ID), ("pointer", 0, MOST_ID),
          ("int64", -1 << 63, (1 << 63) - 1), ("uint32", 0, (1 << 32) - 1),
          ("int32", -1 << 31, (1 << 31) - 1))),
    ("log", "{ log = 'a', keys = { n = { uint64 = {} } } }", "keys.n", 0, MOST_ID),
    ("log", "{ log = 'a', keys = { n = { int64 = {} } } }", "keys.n", -1 << 63, (1 << 63) - 1),
]  # fmt: skip
"""Of threads that write something, an action with a number, its place, and the edges of it."""
ROUNDS = [
    *(each for each in EDGES if each[2] not in {"migrate", "typed_event"}),
    ("trace", "{ counter = 'c', series = { v = {} } }", "series.v", 0, 0),
]
"""Those whose number may be a text with the round of a loop."""


def thread_of(what: str, script: str) -> str:
    """A scenario whose thread writes something, on a target of two CPUs."""
    kind, device = MEMORIES[what]
    start = '[[step]]\ndo = "xray.start"\nrecorder = "m"\n' if what == "xray" else RUN
    return (
        f'[target]\ncpus = 2\n[device.m]\nkind = "{kind}"\n{start}[[step]]\ndo = "{what}.thread"'
        f'\n{device} = "m"\nprocess = "p"\nthread = "t"\nscript = {script}\n'
    )


def places(host: Host, text: str) -> dict[str, str]:
    """What is wrong with a scenario: messages by paths; none if it can be run."""
    try:
        parse(f'[scenario]\nname = "x"\n{text}', host)
    except ScenarioError as error:
        return {fault.path: fault.message for fault in error.faults}
    return {}


@cases(("what", "action", "place", "least", "most"), EDGES)
def test_numbers_are_bounded_before_anything_runs(
    host: Host, what: str, action: str, place: str, least: int, most: int
) -> None:
    for number, sound in ((least, True), (most, True), (least - 1, False), (most + 1, False)):
        if abs(number) < 1 << 63 or sound:  # TOML of other sizes is Python's alone
            found = places(host, thread_of(what, f"[{action.replace('{}', str(number))}]"))
            assert list(found) == ([] if sound else [f"step[1].script[0].{place}"])
            assert sound or f"is {number}, but must be" in found[f"step[1].script[0].{place}"]


@cases(("what", "action", "place", "least", "most"), ROUNDS)
@cases("named", ["{i}", "{j}", "i", "1{j}"])
def test_rounds_are_those_of_a_loop_around(
    host: Host, named: str, what: str, action: str, place: str, least: int, most: int
) -> None:
    action = action.replace("{}", repr(named))
    found = places(host, thread_of(what, LOOP % action))
    assert list(found) == ([] if named == "{i}" else [f"step[1].script[0].body[0].{place}"])
    assert list(places(host, thread_of(what, f"[{action}]"))) == [f"step[1].script[0].{place}"]


@cases("cpu", [1, 2])
def test_threads_and_states_are_of_a_cpu_of_the_target(host: Host, cpu: int) -> None:
    state = f'[[step]]\ndo = "cpu.pstate"\ncpu = {cpu}\nratio = 1\n'
    text = f"{thread_of('trace', '[]')}cpu = {cpu}\n{state}"
    assert list(places(host, text)) == (["step[1].cpu", "step[2].cpu"] if cpu > 1 else [])


@cases(
    ("head", "path"),
    [
        ("", "scenario"),
        ("[scenario]\n", "scenario.name"),
        ('[scenario]\nname = "x"\nseed = -1\n', "scenario.seed"),
        (f'[scenario]\nname = "x"\nseed = {1 << 64}\n', "scenario.seed"),
        ('[scenario]\nname = "x"\nseed = "1"\n', "scenario.seed"),
        ("[scenario]\nname = 3\n", "scenario.name"),
    ],
)
def test_what_is_wrong_with_the_head(faults: Faults, head: str, path: str) -> None:
    assert list(faults(RUN, head=head)) == [path]


def test_all_that_is_wrong_is_told_at_once(host: Host) -> None:
    text = """
    [scenario]
    seed = 1.5
    [target]
    cpus = 0
    nodez = []
    [device.a]
    kind = "nothing"
    [[step]]
    do = "target.run"
    for = "soon"
    [[step]]
    do = "nothing.at_all"
    [[step]]
    do = "target.archive"
    """
    with pytest.raises(ScenarioError) as caught:
        parse(text, host, path=Path("folder/bad.toml"))
    error = caught.value
    assert {fault.path for fault in error.faults} == {
        "scenario.name", "scenario.seed", "target.nodez", "device.a.kind", "step[0].for",
        "step[1].do", "step[2].as",
    }  # fmt: skip
    assert error.exit_code == ExitCode.USAGE
    assert "7 errors" in error.message
    for fault in error.faults:
        assert f"\n  line {fault.line}: {fault.path}: {fault.message}" in str(error)
    lines = {fault.path: fault.line for fault in error.faults}
    assert lines["scenario.seed"] == 3
    assert lines["target.nodez"] == 6
    assert lines["step[1].do"] == 13
    assert lines["step[2].as"] == 14  # where the step begins, which lacks it


def test_names_are_not_doubted_where_a_step_could_not_be_read(faults: Faults) -> None:
    found = faults(
        '[[step]]\ndo = "target.archive"\nas = 1\n'
        '[[step]]\ndo = "capture.decode"\nfrom = "x"\nas = "a"\n'
    )
    assert list(found) == ["step[0].as"]


@cases("text", ["[scenario", "a = 1\na = 2\n"])
def test_what_is_no_toml(host: Host, text: str) -> None:
    with pytest.raises(ScenarioError, match="not valid TOML"):
        parse(text, host)


def test_files_that_are_no_texts(host: Host, tmp_path: Path) -> None:
    with pytest.raises(UnreadableError):
        load(tmp_path / "none.toml", host)
    path = tmp_path / "latin.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError, match="not valid UTF-8"):
        load(path, host)


def test_a_scenario_without_an_emulator(tmp_path: Path) -> None:
    from fxframework.replay import plugin

    host = Host(discover=False)
    host.register(plugin, name="replay", distribution="fxframework")
    with pytest.raises(ScenarioError) as caught:
        parse('[scenario]\nname = "x"\n[target]\n' + RUN, host)
    assert [fault.path for fault in caught.value.faults] == ["target", "step[0].do"]


# --- What is right -------------------------------------------------------------------------------


def test_a_scenario_is_what_its_file_says(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(
        '[scenario]\nname = "n"\nseed = 5\ndescription = "d"\n[target]\ncpus = 3\n'
        f'slice = "1.5ms"\n{PROVIDER}size = 8192\n{RUN}for = 0x10\n'
    )
    scenario = load(path, host)
    assert (scenario.name, scenario.seed, scenario.description) == ("n", 5, "d")
    assert scenario.path == path
    assert [device.name for device in scenario.devices] == ["target", "app"]
    assert scenario.devices[0].parameters.cpus == 3
    assert scenario.devices[0].parameters.slice == 1_500_000
    assert scenario.devices[1].parameters.size == 8192
    assert scenario.steps[0].parameters.for_ == 16
    assert scenario.steps[0].path == "step[0]"


@cases(
    ("value", "ns"),
    [
        (17, 17), (-3, -3), ("17ns", 17), ("3us", 3_000), ("3 µs", 3_000), ("1.5ms", 1_500_000),
        ("0.000000001s", 1), ("2s", 2_000_000_000), ("-2s", -2_000_000_000), ("1e3 ns", 1000),
    ],
)  # fmt: skip
def test_durations(value: object, ns: int) -> None:
    assert nanoseconds(value) == ns


@cases(
    "value",
    [True, 1.5, "1", "", "s", "1/2s", "1.5ns", "2m", None, "nans", "1e999999999s", "1e-999999999s"],
)
def test_what_is_no_duration(value: object) -> None:
    with pytest.raises(ValueError, match="a duration"):
        nanoseconds(value)


@cases(
    "name",
    ["", ".", "..", "a/../b", "/a", "a\\b", "./a", "a/", "a//b", "a\0b", "report.json"],
)
def test_what_cannot_name_an_output(name: str) -> None:
    assert output_fault(name)


def test_what_can_name_an_output() -> None:
    assert not output_fault("a.fxt")
    assert not output_fault("folder/a..b.json")


# --- Parameters of anybody's steps ---------------------------------------------------------------


@attrs.frozen
class Colour:
    name: str

    @classmethod
    def from_toml(cls, value: Any) -> Colour:
        if value not in {"red", "blue"}:
            raise ValueError(f"is {value!r}, no colour")
        return cls(value)


@attrs.frozen
class Everything:
    times: list[Duration] = parameter(factory=list, help="times")
    pairs: tuple[int, ...] = parameter((), help="pairs")
    table: dict[str, list[bool]] = parameter(factory=dict, help="table")
    either: int | str | None = parameter(None, help="either")
    colour: Colour | None = parameter(None, help="colour")
    ratio: float = parameter(0.5, help="ratio")
    free: dict[str, Any] = parameter(factory=dict, help="free")
    class_: str = parameter("", help="a word of Python's")


class Plugin:
    @hookimpl
    def fx_step_kinds(self) -> list[StepKind]:
        return [
            StepKind(name="my.step", title="", parameters=lambda: Everything, run=print),
            StepKind(name="my.broken", title="", parameters=lambda: 1 / 0, run=print),  # type: ignore[arg-type, return-value]
        ]

    @hookimpl
    def fx_devices(self) -> list[DeviceKind]:
        return [DeviceKind(name="box", title="a box", open=print)]


@pytest.fixture
def mine() -> Host:
    host = Host(discover=False)
    host.register(Plugin(), name="mine", distribution="mine")
    return host


def test_every_type_of_parameters(mine: Host) -> None:
    text = """
    [scenario]
    name = "x"
    [[step]]
    do = "my.step"
    times = [1, "2us"]
    pairs = [3, 4]
    table = { a = [true, false], b = [] }
    either = "5"
    colour = "red"
    ratio = 1
    free = { a = 1, b = [{ c = 2.5 }] }
    class = "c"
    """
    (step,) = parse(text, mine).steps
    assert step.parameters == Everything(
        times=[Duration(1), Duration(2000)],
        pairs=(3, 4),
        table={"a": [True, False], "b": []},
        either="5",
        colour=Colour("red"),
        ratio=1.0,
        free={"a": 1, "b": [{"c": 2.5}]},
        class_="c",
    )


def test_every_type_of_parameters_wrong(mine: Host) -> None:
    text = """
    [scenario]
    name = "x"
    [device.b]
    kind = "box"
    lid = true
    [[step]]
    do = "my.step"
    times = [1, "x", true]
    pairs = [3, "4"]
    table = { a = [true, 0], b = 1 }
    either = 1.5
    colour = "green"
    ratio = "half"
    free = 1
    class_ = "c"
    [[step]]
    do = "my.broken"
    """
    with pytest.raises(ScenarioError) as caught:
        parse(text, mine)
    found = {fault.path: fault.message for fault in caught.value.faults}
    assert set(found) == {
        "device.b.lid", "step[0].times[1]", "step[0].times[2]", "step[0].pairs[1]",
        "step[0].table.a[1]", "step[0].table.b", "step[0].either", "step[0].colour",
        "step[0].ratio", "step[0].free", "step[0].class_", "step[1]",
    }  # fmt: skip
    assert found["step[0].either"] == "is 1.5, not an integer or a string"
    assert found["step[0].colour"] == "is 'green', no colour"
    assert "ZeroDivisionError" in found["step[1]"]


# --- JSON Schema ---------------------------------------------------------------------------------


def test_the_schema_has_every_step_and_every_device(host: Host) -> None:
    schema = json_schema(host)
    steps = {
        each["properties"]["do"]["const"] for each in schema["properties"]["step"]["items"]["oneOf"]
    }
    assert steps == set(host.step_kinds)
    devices = schema["properties"]["device"]["additionalProperties"]["oneOf"]
    assert {each["properties"]["kind"]["const"] for each in devices} == set(host.devices) - {
        "target"
    }
    assert schema["properties"]["target"]["properties"]["cpus"]["default"] == 4
    assert schema["required"] == ["scenario", "step"]


def test_every_parameter_of_the_schema_is_described(host: Host) -> None:
    schema = json_schema(host)

    def described(where: str, node: Any) -> None:
        if isinstance(node, dict):
            for name, each in node.get("properties", {}).items():
                if isinstance(each, dict) and name not in {"do", "kind"} and "$" not in name:
                    assert each.get("description") or "const" in each, f"{where}.{name}"

    for each in schema["properties"]["step"]["items"]["oneOf"]:
        described(each["properties"]["do"]["const"], each)
        assert each["title"]
    described("target", schema["properties"]["target"])
    for name, each in schema["$defs"].items():
        described(name, each)


def test_references_of_the_schema_lead_somewhere(host: Host) -> None:
    schema = json_schema(host)

    def check(node: Any) -> None:
        if isinstance(node, dict):
            if "$ref" in node:
                assert node["$ref"].removeprefix("#/$defs/") in schema["$defs"]
            for each in node.values():
                check(each)
        elif isinstance(node, list):
            for each in node:
                check(each)

    check(schema)
    assert {"fx_trace.steps.Log", "fx_log.steps.Log"} <= schema["$defs"].keys()


def test_the_schema_accepts_the_samples_of_steps_and_devices(host: Host) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    schema = json_schema(host)
    validator = jsonschema.validators.validator_for(schema)(schema)
    kinds = [*host.step_kinds.values(), *host.devices.values()]
    texts = {kind.name: kind.sample() for kind in kinds if kind.sample is not None}
    assert len(texts) > 30
    for name, text in texts.items():
        found = validator.iter_errors(json.loads(json.dumps(tomllib.loads(text), default=str)))
        assert not [error.message for error in found], name


def test_every_type_in_the_schema(mine: Host) -> None:
    schema = table_schema(mine.step_kinds["my.step"].parameters(), {})
    properties = schema["properties"]
    assert properties["pairs"]["items"] == {"type": "integer"}
    assert properties["table"]["additionalProperties"]["items"] == {"type": "boolean"}
    assert properties["either"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert properties["ratio"] == {"type": "number", "description": "ratio", "default": 0.5}
    assert "class" in properties
    assert schema["required"] == []


# --- Whatever stands in a file -------------------------------------------------------------------

WORDS = st.sampled_from(
    [
        "scenario", "target", "device", "step", "name", "seed", "kind", "do", "app", "cpus", "size",
        "mode", "trace_provider", "vmo", "target.run", "trace.thread", "capture.expect", "script",
        "slice", "run", "loop", "body", "args", "for", "as", "from", "capture", "where", "columns",
        "findings", "target.archive", "fault.crash", "stores", "provider", "process", "thread",
    ]
)  # fmt: skip
VALUES = st.recursive(
    st.one_of(
        st.booleans(), st.integers(-3, 5000), st.floats(), st.text(max_size=4), WORDS,
        st.dates(), st.sampled_from(["1ms", "2s", "{i}"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(WORDS | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)  # fmt: skip
TABLES = st.dictionaries(WORDS, VALUES, max_size=5)


@given(
    st.dictionaries(WORDS, VALUES, max_size=4),
    st.lists(st.tuples(WORDS, TABLES), max_size=4),
    st.lists(st.tuples(WORDS, TABLES), max_size=4),
)
def test_any_document_is_understood_or_told_wrong(
    host: Host, document: dict[str, Any], devices: list[Any], steps: list[Any]
) -> None:
    document.setdefault("scenario", {"name": "x"})
    document.setdefault("device", {str(at): {**t, "kind": k} for at, (k, t) in enumerate(devices)})
    document.setdefault("step", [{**table, "do": kind} for kind, table in steps])
    reading = _ScenarioReader(host)
    scenario = reading.scenario(document, None)
    assert reading.faults or scenario is not None
    for fault in reading.faults:
        assert fault.message
        assert "\n" not in fault.message
        # Nothing of how it was found shows.
        assert "Error" not in fault.message, fault


@cases("made", [dict, Any, None, "attrs", 1 / 1, ZeroDivisionError])
def test_parameters_that_are_no_attrs_class(made: Any, tmp_path: Path) -> None:
    def parameters() -> Any:
        if made is ZeroDivisionError:
            raise made("it fails")
        return made

    class Odd:
        @hookimpl
        def fx_step_kinds(self) -> list[StepKind]:
            return [StepKind(name="my.odd", title="", parameters=parameters, run=print)]

    host = Host()
    host.register(Odd(), name="odd")
    path = tmp_path / "a.toml"
    path.write_text('[scenario]\nname = "a"\n[[step]]\ndo = "my.odd"\nx = 1\n')
    trouble = f"are {made!r}, not an attrs class"
    if made is ZeroDivisionError:
        trouble = "cannot be loaded: ZeroDivisionError"
    done = run_cli("replay", path, host=host)
    assert done.exit_code in {1, 2}
    assert "error[FXF000" in done.stderr
    assert "FXF0000" not in done.stderr
    assert f"the parameters of my.odd {trouble}" in done.stderr
    schema = run_cli("replay", "--schema", host=host)
    assert schema.exit_code == 0
    assert "my.odd" not in schema.text
    assert f"plugin odd (none): no JSON Schema of my.odd: the parameters of my.odd {trouble}" in (
        schema.stderr
    )

"""`fxf replay` and `fxf record`, as a person calls them."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import attrs
import orjson
import pytest

from fx_log.format import StreamHeader
from fx_trace.sample import sample
from fxframework import hookimpl
from fxframework.host import Host
from fxframework.kit.steps import parameter
from fxframework.registry import StepKind
from fxframework.replay import json_schema
from fxframework.replay.values import NoParameters
from fxframework.testing.cli import run_cli

SCENARIOS = Path(__file__).resolve().parents[2] / "examples" / "scenarios"
GOOD = '[scenario]\nname = "good"\n[[step]]\ndo = "target.archive"\nas = "a.fxt"\n'
BAD = GOOD + '[[step]]\ndo = "target.run"\ncrashes = 1\n'
WRONG = GOOD + '[[step]]\ndo = "target.rum"\n[[step]]\ndo = "target.run"\nfor = "x"\n'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with three scenarios."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"good": GOOD, "bad": BAD, "wrong": WRONG}.items():
        (tmp_path / f"{name}.toml").write_text(text)
    return tmp_path


# --- replay --------------------------------------------------------------------------------------


def test_boot_leaves_archive_json_and_report(host: Host, here: Path) -> None:
    done = run_cli("replay", SCENARIOS / "boot.toml", host=host)
    assert done.exit_code == 0, done.stderr
    assert done.text.startswith("boot (seed 2026): ok")
    out = here / "boot.replay"
    assert {path.name for path in out.iterdir()} == {"boot.fxt", "boot.json", "report.json"}
    assert orjson.loads((out / "report.json").read_bytes())["ok"]
    assert orjson.loads((out / "boot.json").read_bytes())["traceEvents"]


def test_what_stands_there_is_kept_unless_forced(host: Host, here: Path) -> None:
    assert run_cli("replay", "good.toml", host=host).exit_code == 0
    again = run_cli("replay", "good.toml", host=host)
    assert again.exit_code == 1
    assert "the folder is not empty" in again.stderr
    assert run_cli("replay", "good.toml", "--force", host=host).exit_code == 0


def test_quiet_says_nothing_but_what_failed(host: Host, here: Path) -> None:
    done = run_cli("replay", "-q", "good.toml", host=host)
    assert (done.exit_code, done.stdout, done.stderr) == (0, b"", "")
    assert (here / "good.replay" / "a.fxt").exists()
    failed = run_cli("replay", "-q", "bad.toml", host=host)
    assert failed.exit_code == 1
    assert "step[1] target.run" in failed.text


def test_an_expectation_that_fails(host: Host) -> None:
    done = run_cli("replay", "bad.toml", "--out", "out", host=host)
    assert done.exit_code == 1
    assert "FAILED (1 of 2 steps)" in done.text
    assert "step[1] target.run" in done.text
    assert "step[0]" not in done.text
    assert (
        "step[0] target.archive"
        in run_cli("replay", "bad.toml", "--out", "out", "--force", "-v", host=host).text
    )


def test_a_scenario_that_makes_no_sense_runs_nothing(host: Host, here: Path) -> None:
    done = run_cli("replay", "wrong.toml", host=host)
    assert done.exit_code == 2
    assert "2 errors in the scenario" in done.stderr
    assert (
        "\n  line 7: step[1].do: there is no step 'target.rum'; did you mean 'target.run'?"
        in done.stderr
    )
    assert "\n  line 10: step[2].for: a duration is" in done.stderr
    assert not (here / "wrong.replay").exists()


def test_several_scenarios(host: Host, here: Path) -> None:
    done = run_cli(
        "replay", "wrong.toml", "good.toml", "bad.toml", "--out", "all", "--junit", "j.xml",
        host=host,
    )  # fmt: skip
    assert done.exit_code == 2
    assert (here / "all" / "good.replay" / "a.fxt").exists()
    assert (here / "all" / "bad.replay" / "report.json").exists()
    names = [suite.get("failures") for suite in ET.parse(here / "j.xml").getroot()]
    assert names == ["0", "1"]
    (here / "other").mkdir()
    shutil.copy("good.toml", "other/good.toml")
    assert run_cli("replay", "good.toml", "other/good.toml", host=host).exit_code == 1


def test_a_report_as_json(host: Host) -> None:
    done = run_cli("replay", "good.toml", "bad.toml", "--json", host=host)
    assert done.exit_code == 1
    found = done.json()
    assert [each["ok"] for each in found["replays"]] == [True, False]
    assert found["replays"][0]["seconds"] > 0


def test_a_seed_and_golden_files(host: Host, here: Path) -> None:
    text = GOOD + '[[step]]\ndo = "golden.compare"\noutput = "a.fxt"\n'
    (here / "g.toml").write_text(text)
    assert run_cli("replay", "g.toml", "--out", "1", host=host).exit_code == 1
    done = run_cli("replay", "g.toml", "--out", "2", "--update-golden", host=host)
    assert done.exit_code == 0
    assert "wrote g.golden/a.fxt" in done.text
    assert run_cli("replay", "g.toml", "--out", "3", host=host).exit_code == 0
    seeded = run_cli("replay", "g.toml", "--out", "4", "--seed", "8", "-v", host=host)
    assert seeded.exit_code == 0
    assert "good (seed 8)" in seeded.text
    assert "skipped: golden files apply only" in seeded.text
    both = run_cli("replay", "g.toml", "--out", "5", "--seed", "8", "--update-golden", host=host)
    assert both.exit_code == 2


def test_the_schema(host: Host) -> None:
    done = run_cli("replay", "--schema", host=host)
    assert done.exit_code == 0
    assert done.json() == orjson.loads(orjson.dumps(json_schema(host)))


@attrs.frozen
class Untyped:
    """Parameters of which one has a type that is nowhere."""

    count: Nowhere = attrs.field(default=0)  # type: ignore[name-defined]  # noqa: F821


@attrs.frozen
class Endless:
    """Parameters of which one may be a number that JSON cannot hold."""

    count: int = parameter(0, help="how many", most=1 << 80)


class FaultyPlugin:
    """Registers two steps without a schema and one with one."""

    @hookimpl
    def fx_step_kinds(self) -> list[StepKind]:
        def kind(name: str, parameters: type) -> StepKind:
            return StepKind(
                name=f"faulty.{name}", title=name, parameters=lambda: parameters, run=print
            )

        return [kind("untyped", Untyped), kind("endless", Endless), kind("plain", NoParameters)]


def test_a_step_without_a_schema_is_left_out_and_its_plugin_named() -> None:
    host = Host()
    host.register(FaultyPlugin(), name="faulty", distribution="faulty-dist")
    done = run_cli("replay", "--schema", host=host)
    assert done.exit_code == 0
    assert "plugin faulty (faulty-dist): no JSON Schema of faulty.untyped: NameError" in done.stderr
    assert "plugin faulty (faulty-dist): no JSON Schema of faulty.endless: " in done.stderr
    steps = done.json()["properties"]["step"]["items"]["oneOf"]
    names = {step["properties"]["do"]["const"] for step in steps}
    assert {"faulty.plain", "target.run"} <= names
    assert not {"faulty.untyped", "faulty.endless"} & names


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("good.toml", "--seed", "-1"),
        ("good.toml", "--seed", str(1 << 64)),
        ("good.toml", "--since", "1s"),
    ],
)
def test_what_makes_no_sense(host: Host, arguments: tuple[str, ...]) -> None:
    assert run_cli("replay", *arguments, host=host).exit_code == 2


def test_a_scenario_that_is_not_there(host: Host) -> None:
    done = run_cli("replay", "none.toml", host=host)
    assert done.exit_code == 1
    assert "none.toml" in done.stderr


# --- record --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["boot.fxt", "boot.fxt.gz", "strange name'\"\\é.fxt"])
def test_a_recorded_capture_replays_byte_for_byte(host: Host, here: Path, name: str) -> None:
    import gzip

    data = sample(20_000)
    folder = here / "captures"
    folder.mkdir()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    done = run_cli("record", folder / name, "-v", host=host)
    assert done.exit_code == 0, done.stderr
    (scenario,) = set(here.glob("*.toml")) - {here / f"{x}.toml" for x in ("good", "bad", "wrong")}
    assert scenario.with_suffix(".fxt").read_bytes() == data
    done = run_cli("replay", scenario, "--out", "out", "-v", host=host)
    assert done.exit_code == 0, done.text + done.stderr
    assert (here / "out" / "replayed.fxt").read_bytes() == data


def test_a_capture_that_stands_there_is_its_own_copy(host: Host, here: Path) -> None:
    (here / "boot.fxt").write_bytes(sample(3000))
    before = (here / "boot.fxt").stat()
    done = run_cli("record", "boot.fxt", host=host)
    assert done.exit_code == 0
    assert done.stderr.startswith("note: wrote boot.toml, which replays boot.fxt (")
    assert "unchanged" in done.stderr
    assert (here / "boot.fxt").stat().st_mtime_ns == before.st_mtime_ns
    again = run_cli("record", "boot.fxt", host=host)
    assert again.exit_code == 1
    assert "boot.toml" in again.stderr
    assert run_cli("record", "boot.fxt", "--force", host=host).exit_code == 0


def test_another_file_beside_the_scenario_is_kept(host: Host, here: Path) -> None:
    (here / "in.fxt").write_bytes(sample(3000))
    (here / "out.fxt").write_bytes(b"mine")
    assert run_cli("record", "in.fxt", "--out", "out.toml", host=host).exit_code == 1
    assert (here / "out.fxt").read_bytes() == b"mine"
    assert not (here / "out.toml").exists()


def test_a_damaged_capture_is_recorded_with_its_findings(host: Host, here: Path) -> None:
    data = bytearray(sample(20_000))
    data[4000:4008] = b"\xff" * 8
    (here / "d.fxt").write_bytes(data)
    assert run_cli("record", "d.fxt", host=host).exit_code in {0, 3}
    done = run_cli("replay", "d.toml", "-v", host=host)
    assert done.exit_code == 0, done.text


def test_a_recording_as_json(host: Host, here: Path) -> None:
    (here / "boot.fxt").write_bytes(sample(3000))
    found = run_cli("record", "boot.fxt", "--json", "--out", "x.toml", host=host).json()
    assert (found["scenario"], found["capture"]) == ("x.toml", "x.fxt")


def test_a_format_that_no_step_replays(host: Host, here: Path) -> None:
    (here / "a.fxllog").write_bytes(StreamHeader().pack())
    done = run_cli("record", "a.fxllog", host=host)
    assert done.exit_code == 2
    assert "there are steps for: log, trace" in done.stderr

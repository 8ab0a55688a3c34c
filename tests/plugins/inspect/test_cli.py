"""The command line on Inspect files: parts, differences, what changes, and what is sound."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fx_inspect.plugin
from fx_inspect.write.salvage import salvage
from fx_inspect.write.writer import Inspector
from fxframework.errors import ExitCode, Severity
from fxframework.exporters import plugin as exporters
from fxframework.host import Host
from fxframework.io.sink import Sink
from fxframework.testing.cli import run_cli

from ...cases import cases
from .trees import Vmo

FILES = json.loads(
    (Path(__file__).parents[2] / "conformance" / "inspect" / "files.json").read_text("utf-8")
)
Run = Callable[..., Any]


@pytest.fixture
def host() -> Host:
    host = Host(discover=False)
    host.register(exporters, name="exporters", distribution="fxframework")
    host.register(fx_inspect.plugin, name="inspect", distribution="fxframework")
    assert not host.failures
    return host


@pytest.fixture
def run(host: Host) -> Run:
    return lambda *arguments, **more: run_cli(*arguments, host=host, **more)


def inspector() -> Inspector:
    made = Inspector()
    made.root.create_string("version", "1.0")
    a = made.root.create_child("a")
    a.create_int("count", 5)
    a.create_double("load", 0.5)
    b = a.create_child("b c")
    b.create_uint("x:y", 7)
    b.create_int_array("list", [1, 2])
    return made


def save(path: Path, made: Inspector) -> Path:
    data = made.copy()
    assert data is not None
    path.write_bytes(data)
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return save(tmp_path / "x.inspect", inspector())


def damaged(name: str) -> bytes:
    case = next(case for case in FILES if case["name"] == name)
    data = bytes.fromhex(case["hex"])
    return data + bytes(max(0, case.get("zero_pad_to", 0) - len(data)))


# --- cat -----------------------------------------------------------------------------------------


def test_cat_prints_the_tree(run: Run, file: Path) -> None:
    result = run("cat", file)
    assert result.exit_code == ExitCode.OK
    assert result.text.startswith("x:\n  metadata:\n    name = x.inspect\n")
    assert "    root:\n      version = 1.0\n      a:\n        count = 5\n" in result.text


def test_cat_prints_what_selectors_choose(run: Run, file: Path) -> None:
    result = run("cat", file, "root/a:count", "root/a/*:x\\:y")
    assert result.exit_code == ExitCode.OK
    assert result.text.partition("payload:\n")[2] == (
        "    root:\n      a:\n        count = 5\n        b c:\n          x:y = 7\n"
    )


def test_tables_and_records_follow_selectors(run: Run, file: Path) -> None:
    rows = run("cat", "--table", "properties", "--json", file, "root/a:count").json_lines()
    assert [row["name"] for row in rows] == ["count"]
    slots = run("cat", "--table", "inspect_slots", "--json", file, "root/a/*:list").json_lines()
    assert [row["int"] for row in slots] == [1, 2]
    records = run("cat", "--records", file, "root/a:count").json_lines()
    assert [record["type"] for record in records] == ["HEADER", "NODE_VALUE", "INT_VALUE"]


def test_json_of_selectors_is_values(run: Run, file: Path) -> None:
    result = run("cat", "--json", file, "root/a:count", "root:version")
    assert result.exit_code == ExitCode.OK
    entries = [{**entry, "offset": 0} for entry in result.json_lines()]
    assert entries == [
        {"path": "root:version", "type": "string", "value": "1.0", "offset": 0},
        {"path": "root/a:count", "type": "int", "value": 5, "offset": 0},
    ]
    nothing = run("cat", "--json", file, "root/none")
    assert (nothing.exit_code, nothing.stdout) == (ExitCode.OK, b"")
    assert "no values" in nothing.stderr


def test_nothing_chosen_is_told(run: Run, file: Path) -> None:
    result = run("cat", file, "root/none")
    assert (result.exit_code, result.stdout) == (ExitCode.OK, b"")
    assert "the selected part is empty" in result.stderr


def test_a_bad_selector_is_wrong_usage(run: Run, file: Path) -> None:
    result = run("cat", file, "root/**:a:b:c")
    assert result.exit_code == ExitCode.USAGE
    assert "character" in result.stderr


def test_follow_takes_no_selectors(run: Run, file: Path) -> None:
    result = run("cat", "-F", file, "root")
    assert result.exit_code == ExitCode.USAGE
    assert "fxf watch" in result.stderr


def test_selectors_are_listed(run: Run, file: Path) -> None:
    expected = [
        "root:version",
        "root/a:count",
        "root/a:load",
        "root/a/b\\ c:x\\:y",
        "root/a/b\\ c:list",
    ]
    for command in (
        ("selectors", file),
        ("cat", "-o", "selectors=yes", file),
        ("convert", file, "-", "-t", "selectors"),
    ):
        assert sorted(run(*command).text.splitlines()) == sorted(expected)
    assert run("selectors", file, "root/a:load").text == "root/a:load\n"
    for selector in expected:
        assert run("selectors", file, selector).text == f"{selector}\n"


def test_what_has_no_selector_is_told(run: Run, tmp_path: Path) -> None:
    made = inspector()
    made.root.create_int("", 1)
    result = run("selectors", save(tmp_path / "nameless.vmo", made))
    assert len(result.text.splitlines()) == 5
    assert "entries with an empty name, which selectors cannot have (1)" in result.stderr


# --- convert -------------------------------------------------------------------------------------


@cases(
    ("out", "begins"),
    [
        ("x.tree", "x:\n  metadata:"),
        ("x.txt", "x:\n  metadata:"),
        ("x.json", '[{"data_source":"Inspect"'),
        ("x.tree.json", '{"name":"root","properties":[{"name":"version","string":"1.0"}]'),
        ("x.series.csv", "snapshot,file,"),
        ("x.selectors", "root:version\n"),
        ("x.csv", "row,offset,node,"),
    ],
)
def test_the_suffix_names_the_form(run: Run, file: Path, out: str, begins: str) -> None:
    result = run("convert", file, file.parent / out)
    assert result.exit_code == ExitCode.OK, result.stderr
    assert (file.parent / out).read_text("utf-8").startswith(begins)


def test_snapshots_become_a_series(run: Run, tmp_path: Path) -> None:
    made = inspector()
    count = made.root.create_int("n", 1)
    first = save(tmp_path / "1.vmo", made)
    count.set(2)
    second = save(tmp_path / "2.vmo", made)
    result = run("convert", first, second, "-", "-t", "series")
    last = result.text.splitlines()[-1].split(",")
    assert last[0] == "1"
    assert last[3:] == ["changed", "root", "n", "int", "2"]
    generations = [struct.unpack_from("<Q", path.read_bytes(), 8)[0] for path in (first, second)]
    assert last[2] == str(generations[1])


# --- diff ----------------------------------------------------------------------------------------


def test_diff_compares_what_paths_say(run: Run, tmp_path: Path) -> None:
    made = inspector()
    a = save(tmp_path / "a.inspect", made)
    value = made.root.create_int("new", 1)
    value.delete()
    b = save(tmp_path / "b.inspect", made)
    assert a.read_bytes() != b.read_bytes()
    result = run("diff", a, b)
    assert result.exit_code == ExitCode.OK
    assert "entries: 8 entries in A, 8 entries in B, the same" in result.text


def test_blocks_in_other_places_are_no_difference(run: Run, tmp_path: Path, file: Path) -> None:
    made = Inspector()
    gone = made.root.create_bytes("gone", bytes(900))
    a = made.root.create_child("a")
    b = a.create_child("b c")
    b.create_int_array("list", [1, 2])
    b.create_uint("x:y", 7)
    a.create_double("load", 0.5)
    a.create_int("count", 5)
    gone.delete()
    made.root.create_string("version", "1.0")
    other = save(tmp_path / "other.inspect", made)
    assert run("diff", "-q", file, other).exit_code == ExitCode.OK
    assert run("diff", "-q", "--by", "record", file, other).exit_code == ExitCode.FAILED


def test_diff_tells_what_changed(run: Run, tmp_path: Path, file: Path) -> None:
    made = Inspector()
    made.root.create_string("version", "1.1")
    a = made.root.create_child("a")
    a.create_uint("count", 5)
    a.create_double("load", 0.5)
    a.create_bool("new", True)
    other = save(tmp_path / "other.inspect", made)
    result = run("diff", file, other)
    assert result.exit_code == ExitCode.FAILED
    lines = [line.strip() for line in result.text.splitlines()]
    assert 'root:version  string "1.0" -> "1.1"' in lines
    assert "root/a:count  int 5 -> uint 5" in lines
    assert "only in A: 3" in lines
    assert "root/a/b\\ c  node" in lines
    assert "root/a/b\\ c:list  int_array [1,2]" in lines
    assert "only in B: 1" in lines
    assert "root/a:new  bool true" in lines
    entries = run("diff", "--json", file, other).json()["entries"]
    assert (entries["only_a"], entries["only_b"], entries["changed"]) == (3, 1, 2)
    assert {one["path"] for one in entries["shown_changed"]} == {"root:version", "root/a:count"}


def test_properties_of_one_name_are_compared_in_their_order(run: Run, tmp_path: Path) -> None:
    paths = []
    for name, values in (("a", (1, 2)), ("b", (1, 3)), ("c", (1,))):
        made = Inspector()
        for value in values:
            made.root.create_int("same", value)
        paths.append(save(tmp_path / name, made))
    a, b, c = paths
    found = run("diff", "--json", a, b).json()["entries"]
    assert (found["changed"], found["only_a"], found["only_b"]) == (1, 0, 0)
    assert found["shown_changed"][0]["a"]["value"] == 2
    found = run("diff", "--json", a, c).json()["entries"]
    assert (found["changed"], found["only_a"], found["only_b"]) == (0, 1, 0)


# --- watch ---------------------------------------------------------------------------------------


def watched(
    run: Run, monkeypatch: pytest.MonkeyPatch, path: Path, *steps: Callable[[], None], **more: Any
) -> Any:
    """What `fxf watch` prints where each step happens between two looks."""
    left = list(steps)

    def sleep(seconds: float) -> None:
        assert seconds == 0.5
        left.pop(0)()

    monkeypatch.setattr("fxframework.cli.watch.pause", sleep)
    options = more.get("options", ())
    selectors = more.get("selectors", ())
    looks = len(steps) + 1
    return run("watch", "--interval", "0.5", "--count", looks, *options, path, *selectors)


def test_watch_tells_what_changes(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = inspector()
    count = made.root.create_int("n", 1)
    path = save(tmp_path / "live.vmo", made)
    generations = []

    def change() -> None:
        count.set(2)
        made.root.create_child("new").create_bool("yes", True)
        save(path, made)
        generations.append(made.generation)

    def remove() -> None:
        count.delete()
        save(path, made)
        generations.append(made.generation)

    result = watched(run, monkeypatch, path, change, lambda: None, remove)
    assert result.exit_code == ExitCode.OK
    first, second = generations
    assert result.text.splitlines() == [
        f"{first:>8}  ~ root:n  int 1 -> 2",
        f"{first:>8}  + root/new  node",
        f"{first:>8}  + root/new:yes  bool true",
        f"{second:>8}  - root:n  int 2",
    ]
    assert "9 entries" in result.stderr


def test_watch_in_json_and_of_a_part(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = inspector()
    values = [made.root.create_int(name, 1) for name in ("seen", "unseen")]
    path = save(tmp_path / "live.vmo", made)

    def change() -> None:
        for value in values:
            value.set(2)
        save(path, made)

    result = watched(
        run, monkeypatch, path, change, options=["--json"], selectors=["root:seen", "root/a"]
    )
    assert result.json_lines() == [
        {
            "generation": made.generation,
            "change": "changed",
            "path": "root:seen",
            "before": {"type": "int", "value": 1},
            "after": {"type": "int", "value": 2},
        }
    ]


def test_a_writer_at_work_is_waited_for(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = inspector()
    path = save(tmp_path / "live.vmo", made)
    data = path.read_bytes()

    def lock() -> None:
        generation = int.from_bytes(data[8:16], "little")
        path.write_bytes(data[:8] + (generation + 1).to_bytes(8, "little") + data[16:])

    def change() -> None:
        made.root.create_int("n", 1)
        save(path, made)

    result = watched(run, monkeypatch, path, lock, change)
    assert result.exit_code == ExitCode.OK
    assert "FXI0501" in result.stderr
    assert result.text.endswith("+ root:n  int 1\n")


def test_what_cannot_be_watched_is_refused(run: Run, tmp_path: Path, file: Path) -> None:
    assert run("watch", "--count", "1", "-").exit_code == ExitCode.USAGE
    assert run("watch", "--count", "1", tmp_path / "none.vmo").exit_code == ExitCode.FAILED
    run("convert", file, tmp_path / "x.jsonl")
    result = run("watch", "--count", "1", tmp_path / "x.jsonl")
    assert result.exit_code == ExitCode.USAGE
    assert "not states that change" in result.stderr


@pytest.mark.parametrize("which", ["name", "string", "slot", "link", "nan"])
def test_diff_tells_bytes_that_are_no_text_apart(run: Run, tmp_path: Path, which: str) -> None:
    paths = [tmp_path / "a.inspect", tmp_path / "b.inspect"]
    for path, odd in zip(paths, (b"n\xff", b"n\xfe"), strict=True):
        vmo = Vmo()
        name = vmo.name("v")
        text = vmo.text(odd)
        if which == "name":
            vmo.add("INT_VALUE", parent=0, name=text, value=1)
        elif which == "string":
            vmo.add("BUFFER_VALUE", parent=0, name=name, total_length=2, extent=text, format=2)
        elif which == "slot":
            array = vmo.add(
                "ARRAY_VALUE", 1, parent=0, name=name, entry_type=4, format=0, count=1, slots=(1,)
            )
            vmo.put(array, 1, 14 | 1 << 8)
            vmo.put(array + 1, 0, text)
        elif which == "link":
            vmo.add("LINK_VALUE", parent=0, name=name, content=text, disposition=0)
        else:
            number = vmo.add("DOUBLE_VALUE", parent=0, name=name, value=1.0)
            vmo.put(number, 1, 0x7FF8_0000_0000_0000 | odd[1])
        path.write_bytes(vmo.data)
    assert run("diff", "-q", *paths).exit_code == 1
    assert run("diff", "-q", paths[0], paths[0]).exit_code == ExitCode.OK


# --- salvage -------------------------------------------------------------------------------------


def tree(run: Run, path: Path) -> Any:
    return json.loads(run("convert", "-f", "inspect", path, "-", "-t", "tree-json").stdout)


def test_salvage_of_a_sound_file_loses_nothing(run: Run, tmp_path: Path, file: Path) -> None:
    out = tmp_path / "out.inspect"
    assert run("salvage", file, out).exit_code == ExitCode.OK
    assert run("verify", "-f", "inspect", out).exit_code == ExitCode.OK
    assert tree(run, out) == tree(run, file)


NEGATIVE = [case["name"] for case in FILES if case["negative"]]


@pytest.mark.parametrize("name", NEGATIVE)
def test_salvage_gives_what_the_verifier_accepts(run: Run, tmp_path: Path, name: str) -> None:
    path, out = tmp_path / "in.inspect", tmp_path / "out.inspect"
    path.write_bytes(damaged(name))
    result = run("salvage", "-f", "inspect", path, out)
    assert result.exit_code in {ExitCode.OK, ExitCode.FINDINGS, ExitCode.FAILED}
    assert "bug" not in result.stderr
    if result.exit_code == ExitCode.FAILED:
        assert not out.exists()
        return
    checked = run("verify", "-f", "inspect", out)
    assert checked.exit_code == ExitCode.OK, checked.text
    assert _bare(tree(run, out)) == _bare(tree(run, path))


def _bare(node: dict[str, Any]) -> dict[str, Any]:
    """A tree without what salvage has no place for: links of no kind, arrays' odd formats."""
    properties = [
        {key: value for key, value in each.items() if key != "display"}
        for each in node["properties"]
    ]
    return {"name": node["name"], "properties": properties,
            "children": [_bare(child) for child in node["children"]]}  # fmt: skip


def test_links_keep_what_they_lead_to(run: Run, tmp_path: Path) -> None:
    made = inspector()
    made.root.create_lazy_child("gone", Inspector).delete()
    made.root.create_lazy_child("lazy", Inspector)
    made.root.create_lazy_values("values", Inspector)
    path, out = save(tmp_path / "in.inspect", made), tmp_path / "out.inspect"
    run("salvage", path, out)
    assert tree(run, out)["links"] == [
        {"name": "lazy", "content": "lazy-1", "disposition": "child"},
        {"name": "values", "content": "values-2", "disposition": "inline"},
    ]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_salvage_keeps_the_version(run: Run, tmp_path: Path, version: int) -> None:
    made = Inspector(version=version)
    made.root.create_child("a").create_string("text", "x" * 3000)
    path, out = save(tmp_path / "in.inspect", made), tmp_path / "out.inspect"
    assert run("salvage", path, out).exit_code == ExitCode.OK
    assert run("verify", "-f", "inspect", out).exit_code == ExitCode.OK
    assert path.read_bytes()[:4] == out.read_bytes()[:4]
    assert tree(run, out) == tree(run, path)


def test_salvage_says_which_blocks_it_leaves_out(run: Run, tmp_path: Path) -> None:
    vmo = Vmo()
    name = vmo.name("n")
    unknown, odd = (vmo.integer(text, 1) for text in ("unknown", "odd"))
    vmo.put(unknown, 0, vmo.word(unknown, 0) | 0xFF << 8)
    vmo.put(odd, 0, vmo.word(odd, 0) | 1 << 4)
    vmo.put(name, 0, vmo.word(name, 0) | 1 << 4)
    path, out = tmp_path / "in.inspect", tmp_path / "out.inspect"
    path.write_bytes(vmo.data)
    result = run("salvage", path, out)
    assert result.exit_code == ExitCode.FINDINGS
    assert "16 bytes, FXI0101 unknown: 16 bytes are a block of unknown type" in result.stderr
    vmo.put(unknown, 0, vmo.word(odd, 0))
    path.write_bytes(vmo.data)
    result = run("salvage", "--force", path, out)
    assert result.exit_code == ExitCode.OK
    assert result.stderr.count("FXI0301") == 3


def test_salvage_refuses_an_array_that_no_block_holds(run: Run, tmp_path: Path) -> None:
    vmo = Vmo()
    vmo.integer("kept", 1)
    vmo.add(
        "ARRAY_VALUE", 8, parent=0, name=vmo.name("a"), entry_type=4, format=0, count=255,
        slots=tuple(range(255)),
    )  # fmt: skip
    path, out = tmp_path / "in.inspect", tmp_path / "out.inspect"
    path.write_bytes(vmo.data + b"xyz")
    result = run("salvage", path, out)
    assert result.exit_code == ExitCode.FINDINGS
    assert "FXI0406 property: a cannot be written" in result.stderr
    assert "kept" in str(tree(run, out))


def test_salvage_reports_blocks_without_room(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fx_inspect.write.salvage.MAX_VMO", 4096)
    made = Inspector(max_size=1 << 16)
    for number in range(200):
        made.root.create_int(f"number {number}", number)
    path, out = save(tmp_path / "in.inspect", made), tmp_path / "out.inspect"
    path.write_bytes(path.read_bytes()[:-16])  # the last block is cut off
    result = run("salvage", path, out)
    assert result.exit_code == ExitCode.FINDINGS
    assert re.search(r"FXI0901.* \d+ blocks do not fit into a VMO of 4096 bytes", result.stderr)
    assert out.stat().st_size == 4096


def everything(version: int) -> bytes:
    """A small VMO with all that a version has."""
    made = Inspector(version=version)
    a = made.root.create_child("a")
    a.create_int("i", 1)
    a.create_double("d", 0.5)
    a.create_string("s", "x" * 90)
    a.create_bytes("b", bytes(50))
    a.create_int_array("l", [1, 2, 3])
    if version == 2:
        a.create_string_array("sa", ["q", "r", "q"])
    a.create_int_linear_histogram("h", 0, 2, 5)
    a.create_uint_exponential_histogram("e", 0, 2, 5, 4)
    a.create_lazy_child("z", Inspector)
    a.create_child("c").create_uint("u", 4)
    data = made.copy()
    assert data is not None
    return data


WHOLE = {version: everything(version) for version in (0, 1, 2)}


@given(
    st.sampled_from(sorted(WHOLE)),
    st.lists(st.tuples(st.integers(16, 1600), st.integers(0, 7)), min_size=1, max_size=20),
    st.none() | st.integers(16, 4096),
)
def test_salvage_of_any_damage(
    version: int, flips: list[tuple[int, int]], size: int | None
) -> None:
    data = bytearray(WHOLE[version])
    for at, bit in flips:
        data[at] ^= 1 << bit
    host = Host(discover=False)
    host.register(fx_inspect.plugin, name="inspect", distribution="fxframework")
    sink = Sink.memory()
    with host.open(bytes(data[:size]), format="inspect") as capture:
        losses = list(salvage(capture, sink, {}))
        before = sorted(repr(entry[:3]) for entry in capture.entries() or ())
    with host.open(sink.getvalue(), format="inspect") as capture:
        capture.scan()
        after = sorted(repr(entry[:3]) for entry in capture.entries() or ())
        worst = capture.diagnostics.worst
    assert worst is None or worst < Severity.WARNING
    assert losses or before == after

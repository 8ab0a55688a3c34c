"""`fxf diff`: what it tells, to people and as JSON, and its exit status."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import toy

from fxframework.cli import diff
from fxframework.errors import ExitCode
from fxframework.host import Host
from fxframework.testing.cli import run_cli

A = [toy.mark("one", 1_000, 7), toy.span("two", 2_000, 500), toy.mark("three", 5_000, -1)]
B = [toy.mark("one", 1_000, 7), toy.span("two", 2_000, 900), toy.mark("four", 5_000, -1)]
SAME, DIFFERENT = ExitCode.OK, ExitCode.FAILED

Save = Callable[..., Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    def make(name: str, *records: bytes) -> Path:
        path = tmp_path / f"{name}.toy"
        path.write_bytes(toy.toy(*records))
        return path

    return make


def test_a_file_is_the_same_as_itself(host: Host, sample: Path) -> None:
    result = run_cli("diff", sample, sample, host=host)
    assert result.exit_code == SAME
    assert result.text == f"A: {sample}\nB: {sample}\nsame: both are the same 80 bytes\n"
    document = run_cli("diff", "--json", sample, sample, host=host).json()
    assert (document["same"], document["identical"]) == (True, True)


def test_what_differs_is_told(host: Host, save: Save) -> None:
    a, b = save("a", *A), save("b", *B)
    result = run_cli("diff", a, b, host=host)
    assert result.exit_code == DIFFERENT
    assert result.stderr == ""
    assert (
        result.text
        == f"""\
A: {a}
B: {b}
records: 4 records in A, 4 records in B
  first difference
    A 0x00000020  {{"record":"span","name":"two","ts":2000,"value":500}}
    B 0x00000020  {{"record":"span","name":"two","ts":2000,"value":900}}
  only in A: 2 (span 1, mark 1)
    0x00000020  {{"record":"span","name":"two","ts":2000,"value":500}}
    0x00000038  {{"record":"mark","name":"three","ts":5000,"value":-1}}
  only in B: 2 (span 1, mark 1)
    0x00000020  {{"record":"span","name":"two","ts":2000,"value":900}}
    0x00000038  {{"record":"mark","name":"four","ts":5000,"value":-1}}
different
"""
    )


def test_as_json(host: Host, save: Save) -> None:
    a, b = save("a", *A), save("b", *B)
    result = run_cli("diff", "--json", "-q", a, b, "--show", "1", host=host)
    assert result.exit_code == DIFFERENT
    document = result.json()
    records = document.pop("records")
    assert document == {
        "fxframework": "diff",
        "version": 1,
        "a": str(a),
        "b": str(b),
        "format": "toy",
        "same": False,
        "identical": False,
        "entries": None,
    }
    span = {"record": "span", "name": "two", "ts": 2_000, "value": 500}
    assert records == {
        "same": False,
        "reordered": False,
        "count_a": 4,
        "count_b": 4,
        "compared_a": 4,
        "compared_b": 4,
        "only_a": {"span": 1, "mark": 1},
        "only_b": {"span": 1, "mark": 1},
        "shown_a": [{"offset": 32, "said": span}],
        "shown_b": [{"offset": 32, "said": {**span, "value": 900}}],
        "first_a": {"offset": 32, "said": span},
        "first_b": {"offset": 32, "said": {**span, "value": 900}},
    }


def test_another_order_is_a_difference_of_records_alone(host: Host, save: Save) -> None:
    a, b = save("a", *A), save("b", *A[::-1])
    result = run_cli("diff", a, b, host=host)
    assert result.exit_code == DIFFERENT
    assert "4 records in A, 4 records in B, the same in another order" in result.text
    assert "slices" not in result.text
    assert run_cli("diff", "--by", "record", a, b, host=host).exit_code == DIFFERENT


def test_only_known_comparisons_can_be_chosen(host: Host, save: Save) -> None:
    a, b = save("a", toy.mark("m", 1)), save("b", toy.mark("m", 2))
    for by in ("all", "record"):
        assert run_cli("diff", "--by", by, a, b, host=host).exit_code == DIFFERENT
    for by in ("colour", "name"):
        result = run_cli("diff", "--by", by, a, b, host=host)
        assert result.exit_code == ExitCode.USAGE
        assert "by: record, entry, all; `fxf compare` shows" in result.stderr


def test_quietly_only_the_status_tells(host: Host, save: Save, sample: Path) -> None:
    for path, status in ((sample, SAME), (save("b", *B), DIFFERENT)):
        result = run_cli("diff", "-q", sample, path, host=host)
        assert (result.exit_code, result.stdout, result.stderr) == (status, b"", "")


def test_long_lists_are_cut(host: Host, save: Save) -> None:
    a = save("a", *(toy.mark(f"n{at}", at) for at in range(50)))
    b = save("b")
    text = run_cli("diff", a, b, host=host).text
    assert text.count('"record":"mark"') == 10 + 1  # and the first difference
    assert "    B has ended" in text
    assert text.count("… and 40 more (--show N shows N)") == 1
    text = run_cli("diff", a, b, "--show", "50", host=host).text
    assert text.count('"record":"mark"') == 50 + 1
    assert "more" not in text


def test_control_characters_are_escaped(host: Host, save: Save) -> None:
    result = run_cli("diff", save("a", toy.mark("\x1b[2J", 1)), save("b"), host=host)
    assert "\x1b" not in result.text
    assert "\\u001b[2J" in result.text


def test_long_records_are_cut_without_v(
    host: Host, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diff, "LONGEST", 20)
    a, b = save("a", *A), save("b")
    text = run_cli("diff", a, b, "--by", "record", host=host).text
    assert '  {"record":"mark","n…\n' in text
    assert '"name":"three"' not in text
    assert '"name":"three"' in run_cli("diff", "-v", a, b, host=host).text


def test_a_stretch_of_time(host: Host, save: Save) -> None:
    a, b = save("a", *A), save("b", *B)
    assert run_cli("diff", a, b, "--until", "500ns", host=host).exit_code == SAME
    assert run_cli("diff", a, b, "--since", "500ns", host=host).exit_code == DIFFERENT


def test_losses_are_told_and_do_not_change_the_status(host: Host, save: Save) -> None:
    a = save("a", toy.mark("m", 1), toy.record(9))
    b = save("b", toy.mark("m", 1), bytes(24), toy.record(9))
    result = run_cli("diff", "--by", "record", a, b, host=host)
    assert result.exit_code == DIFFERENT
    assert result.stderr.count("data was lost") == 2


def test_what_cannot_be_read_cannot_be_compared(host: Host, save: Save, tmp_path: Path) -> None:
    a = save("a", *A)
    bad = tmp_path / "bad.toy"
    bad.write_bytes(toy.record(9))
    result = run_cli("diff", a, bad, host=host)
    assert result.exit_code == ExitCode.FAILED
    assert "nothing in it can be read as toy" in result.stderr
    assert result.stdout == b""
    assert run_cli("diff", a, tmp_path / "gone.toy", host=host).exit_code == ExitCode.FAILED
    (tmp_path / "x.dat").write_bytes(b"garbage?")
    assert run_cli("diff", a, tmp_path / "x.dat", host=host).exit_code == ExitCode.NO_READER


def test_wrong_usage(host: Host, sample: Path) -> None:
    assert run_cli("diff", sample, host=host).exit_code == ExitCode.USAGE
    assert run_cli("diff", "-", "-", host=host).exit_code == ExitCode.USAGE
    result = run_cli("diff", sample, "-f", "records", f"toy:{sample}", host=host)
    assert result.exit_code == ExitCode.USAGE
    assert "compare captures of one format" in result.stderr


def test_a_pipe_and_a_records_file(host: Host, sample: Path, tmp_path: Path) -> None:
    assert run_cli("diff", sample, "-", stdin=toy.SAMPLE, host=host).exit_code == SAME
    lines = tmp_path / "lines.jsonl"
    run_cli("convert", sample, lines, host=host)
    assert run_cli("diff", sample, lines, host=host).exit_code == SAME


def test_records_are_counted_as_info_counts_them(tmp_path: Path) -> None:
    """Registrations are records, which are not compared."""
    boot = Path(__file__).parents[2] / "examples" / "scenarios" / "boot.golden" / "boot.fxt"
    part = tmp_path / "part.fxt"
    part.write_bytes(boot.read_bytes()[:17_000])
    counts = [
        run_cli("info", "--json", path).json()["captures"][0]["records"] for path in (boot, part)
    ]
    found = run_cli("diff", "--json", boot, part).json()["records"]
    assert [found["count_a"], found["count_b"]] == counts
    assert found["compared_a"] < found["count_a"]
    text = run_cli("diff", boot, part).text
    assert f"records: {counts[0]} records in A, {counts[1]} records in B" in text
    assert f"compared: {found['compared_a']} and {found['compared_b']}, all but those" in text

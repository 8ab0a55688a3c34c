"""`fxf salvage`: what is written, what is told of what was lost, and the exit status."""

from __future__ import annotations

import gzip
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import toy

import fxframework as fxf
from fxframework import hookimpl
from fxframework.errors import ExitCode
from fxframework.host import Host
from fxframework.io.sink import Sink
from fxframework.kit.salvage import Loss
from fxframework.model.capture import Capture
from fxframework.registry import Option, Writer
from fxframework.testing.cli import run_cli

MARK = toy.mark("m", 1)
DAMAGED = toy.toy(MARK, toy.record(9), bytes(24), toy.record(7), b"odd")


class Merged:
    """What a composing writer opens: one line per row."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        self._sink = sink
        self._mark = b"!" if options["loud"] else b""

    def write(self, capture: Capture) -> None:
        rows = len(capture.table("instants"))
        self._sink.write(b"%d rows" % rows + self._mark)

    def close(self) -> Mapping[str, int]:
        return {"colours": 2}


def other_writer(**more: Any) -> Writer:
    return Writer(
        format="other", title="others", suffixes=(".other",), open=toy.ToyWriter,
        accepts=frozenset({"instants"}), merge=Merged,
        options=(Option(name="loud", type=bool, default=False, help="with a mark"),), **more,
    )  # fmt: skip


def with_writers(host: Host, *writers: Writer, name: str = "others") -> Host:
    module = types.ModuleType(name)
    module.fx_writers = hookimpl(lambda: list(writers))  # type: ignore[attr-defined]
    host.register(module, name=name, distribution=name, version="1")
    assert not host.failures
    return host


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    path = tmp_path / "damaged.toy"
    path.write_bytes(DAMAGED)
    return path


def test_what_is_sound_is_written_and_what_was_lost_is_told(host: Host, damaged: Path) -> None:
    out = damaged.with_name("out.toy")
    result = run_cli("salvage", damaged, out, host=host)
    assert result.exit_code == ExitCode.FINDINGS
    assert out.read_bytes() == toy.toy(MARK, toy.record(7))
    assert result.stdout == b""
    assert result.stderr.splitlines() == [
        f"note: {damaged}: 3 losses",
        "  0x00000020  24 bytes, – damaged: 24 bytes are not a record; left out",
        "  0x00000038  24 bytes, – padding: 24 bytes are not a record; left out",
        "  0x00000068  3 bytes, – damaged: 3 bytes are not a record; left out",
        f"note: wrote {out}: 3 records, 56 bytes; lost: 3 records, 51 bytes (47.66 % of 107)",
    ]
    assert run_cli("verify", out, host=host).text.count("data loss") == 0


def test_a_sound_file_keeps_its_bytes(host: Host, sample: Path) -> None:
    out = sample.with_name("out.toy")
    result = run_cli("salvage", sample, out, host=host)
    assert result.exit_code == ExitCode.OK
    assert out.read_bytes() == toy.SAMPLE
    assert result.stderr == (
        f"note: wrote {out}: 4 records, 80 bytes; lost: 0 records, 0 bytes (0 % of 80)\n"
    )


def test_of_padding_nothing_is_lost(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "a.toy"
    path.write_bytes(toy.toy(MARK, bytes(24), MARK))
    result = run_cli("salvage", path, tmp_path / "out.toy", host=host)
    assert result.exit_code == ExitCode.OK
    assert "padding" in result.stderr
    assert (tmp_path / "out.toy").read_bytes() == toy.toy(MARK, MARK)


def test_options_of_the_file_go_on(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "bare.toy"
    path.write_bytes(MARK + toy.record(9))
    run_cli("salvage", path, tmp_path / "out.toy", host=host)
    assert (tmp_path / "out.toy").read_bytes() == MARK
    result = run_cli("salvage", path, tmp_path / "more.toy", "-o", "magic=yes", host=host)
    assert result.exit_code == ExitCode.FINDINGS
    assert (tmp_path / "more.toy").read_bytes() == toy.toy(MARK)
    wrong = run_cli("salvage", path, tmp_path / "x.toy", "-o", "colour=red", host=host)
    assert wrong.exit_code == ExitCode.USAGE


def test_many_losses_are_counted(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "a.toy"
    path.write_bytes(toy.toy(MARK, *[toy.record(9)] * 1234))
    result = run_cli("salvage", path, tmp_path / "out.toy", host=host)
    assert result.stderr.count("damaged:") == 20
    assert "  … and 1,214 more (-v shows all)" in result.stderr
    told = run_cli("salvage", "-v", path, tmp_path / "two.toy", host=host).stderr
    assert told.count("damaged:") == 1234
    shown = run_cli("salvage", "--json", path, tmp_path / "three.toy", host=host).json()
    assert len(shown["losses"]) == 1234


def test_as_json(host: Host, damaged: Path) -> None:
    out = damaged.with_name("out.toy")
    result = run_cli("salvage", "--json", damaged, out, host=host)
    assert result.exit_code == ExitCode.FINDINGS
    assert result.stderr == ""
    document = result.json()
    losses = document.pop("losses")
    assert document == {
        "fxframework": "salvage",
        "version": 1,
        "path": str(damaged),
        "format": "toy",
        "size": 107,
        "out": str(out),
        "to": "toy",
        "records": {"written": 3, "lost": 3},
        "bytes": {"written": 56, "lost": 51},
        "dropped": {},
        "remaining": {},
        "loss_counts": {"none": 3},
    }
    assert losses[0] == {
        "offset": 32,
        "bytes": 24,
        "code": None,
        "severity": "data_loss",
        "what": "damaged",
        "message": "24 bytes are not a record; left out",
    }
    assert [loss["severity"] for loss in losses] == ["data_loss", "warning", "data_loss"]


def test_quietly(host: Host, damaged: Path) -> None:
    result = run_cli("salvage", "-q", damaged, damaged.with_name("out.toy"), host=host)
    assert (result.exit_code, result.stdout, result.stderr) == (ExitCode.FINDINGS, b"", "")


def test_shares_are_honest() -> None:
    from fxframework.cli.salvage import _percent

    assert [_percent(part, 100_000) for part in (0, 1, 1_234, 99_999, 100_000)] == [
        "0 %", "under 0.01 %", "1.23 %", "99.99 %", "100 %",
    ]  # fmt: skip


def test_nothing_sound_is_a_failure_and_nothing_is_written(host: Host, tmp_path: Path) -> None:
    path, out = tmp_path / "a.toy", tmp_path / "out.toy"
    path.write_bytes(toy.record(9) + b"odd")
    result = run_cli("salvage", path, out, host=host)
    assert result.exit_code == ExitCode.FAILED
    assert "nothing in it can be read as toy" in result.stderr
    assert not out.exists()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.toy"]


def test_an_existing_file_stays(host: Host, damaged: Path) -> None:
    out = damaged.with_name("out.toy")
    out.write_bytes(b"mine")
    result = run_cli("salvage", damaged, out, host=host)
    assert result.exit_code == ExitCode.FAILED
    assert out.read_bytes() == b"mine"
    assert run_cli("salvage", "--force", damaged, out, host=host).exit_code == ExitCode.FINDINGS
    assert out.read_bytes() != b"mine"


def test_in_place(host: Host, damaged: Path) -> None:
    result = run_cli("salvage", "--force", damaged, damaged, host=host)
    assert result.exit_code == ExitCode.FINDINGS
    assert damaged.read_bytes() == toy.toy(MARK, toy.record(7))


def test_packed(host: Host, damaged: Path) -> None:
    out = damaged.with_name("out.toy.gz")
    assert run_cli("salvage", damaged, out, host=host).exit_code == ExitCode.FINDINGS
    assert gzip.decompress(out.read_bytes()) == toy.toy(MARK, toy.record(7))


def test_what_a_damaged_gzip_stream_lost_is_told(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "a.toy.gz"
    path.write_bytes(gzip.compress(toy.SAMPLE)[:-4])
    result = run_cli("salvage", path, tmp_path / "out.toy", host=host)
    assert result.exit_code == ExitCode.FINDINGS
    assert "FXF0101" in result.stderr
    assert (tmp_path / "out.toy").read_bytes() == toy.SAMPLE


@pytest.mark.parametrize("out", ["out.txt", "out", "-", "out.jsonl"])
def test_out_must_have_the_suffix_of_a_format(host: Host, damaged: Path, out: str) -> None:
    result = run_cli("salvage", damaged, out, host=host)
    assert result.exit_code == ExitCode.USAGE
    assert ".toy" in result.stderr


def test_it_looks_at_whole_captures(host: Host, damaged: Path) -> None:
    result = run_cli("salvage", damaged, "out.toy", "--since", "1s", host=host)
    assert result.exit_code == ExitCode.USAGE


def test_strictly_the_first_loss_stops_it(host: Host, damaged: Path) -> None:
    out = damaged.with_name("out.toy")
    result = run_cli("salvage", "--strict", damaged, out, host=host)
    assert result.exit_code == ExitCode.FAILED
    assert not out.exists()


def test_another_format_is_made_from_the_tables(host: Host, damaged: Path) -> None:
    with_writers(host, other_writer())
    out = damaged.with_name("out.other")
    result = run_cli("salvage", damaged, out, "-o", "loud=yes", host=host)
    assert result.exit_code == ExitCode.FINDINGS
    assert out.read_bytes() == b"1 rows!"
    lost = "lost: 2 findings of lost data"
    assert result.stderr.splitlines() == [
        "note: not written as other: colours (2)",
        f"note: {damaged}: 2 losses",
        "  0x00000020  0 bytes, TOY0001 finding: a record is damaged",
        "  0x00000068  0 bytes, TOY0001 finding: a record is damaged",
        f"note: wrote {out}: made from the tables of {damaged}, 7 bytes; {lost}",
    ]
    shown = run_cli("salvage", "--json", "--force", damaged, out, host=host).json()
    assert shown["records"] == {"written": None, "lost": None}
    sound = damaged.with_name("sound.toy")
    sound.write_bytes(toy.SAMPLE)
    assert run_cli("salvage", "--force", sound, out, host=host).exit_code == ExitCode.OK


def test_another_formats_options_are_not_those_of_this(host: Host, tmp_path: Path) -> None:
    with_writers(host, other_writer())
    path = tmp_path / "bare.toy"
    path.write_bytes(MARK)  # its writer would be told not to begin with the magic
    result = run_cli("salvage", path, tmp_path / "out.other", host=host)
    assert result.exit_code == ExitCode.OK


def test_a_format_that_cannot_take_it_is_refused(host: Host, damaged: Path) -> None:
    with_writers(host, attrs.evolve(other_writer(), merge=None))
    result = run_cli("salvage", damaged, "out.other", host=host)
    assert result.exit_code == ExitCode.USAGE
    assert "toy captures cannot be written as other" in result.stderr


def test_of_formats_that_share_a_suffix_the_captures_own(host: Host, damaged: Path) -> None:
    with_writers(host, attrs.evolve(other_writer(), suffixes=(".toy", ".both")))
    third = attrs.evolve(other_writer(), format="third", suffixes=(".both",))
    with_writers(host, third, name="thirds")
    out = damaged.with_name("out.toy")
    run_cli("salvage", damaged, out, host=host)
    assert out.read_bytes().startswith(toy.MAGIC)
    result = run_cli("salvage", damaged, damaged.with_name("out.both"), host=host)
    assert result.exit_code == ExitCode.USAGE
    assert "several formats have the suffix '.both': other, third" in result.stderr


def test_of_one_plugins_formats_that_share_a_suffix_the_first(host: Host, damaged: Path) -> None:
    third = attrs.evolve(other_writer(), format="third", suffixes=(".both",), merge=None)
    with_writers(host, attrs.evolve(other_writer(), suffixes=(".both",)), third)
    for command in ("salvage", "convert"):
        out = damaged.with_name(f"{command}.both")
        result = run_cli(command, damaged, out, host=host)
        assert result.exit_code == ExitCode.FINDINGS
        assert f"{out}: made from the tables" in result.stderr or command == "convert"
        assert out.read_bytes() == b"1 rows"


def test_a_format_may_bring_its_own(
    host: Host, damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def own(capture: Capture, sink: Sink, options: Mapping[str, Any]) -> Iterator[Loss]:
        assert options == {"magic": True}
        sink.write(b"mended")
        yield Loss(8, 0, "mark", "\x1b[mended", "TOY0001")
        yield Loss(32, 24, "damaged", "gone", "TOY0002")

    monkeypatch.setattr(toy, "WRITER", attrs.evolve(toy.WRITER, salvage=own))
    host = Host(discover=False)
    host.register(toy, name="toy", distribution="toys", version="2.0")
    out = damaged.with_name("out.toy")
    result = run_cli("salvage", damaged, out, host=host)
    assert result.exit_code == ExitCode.FINDINGS
    assert out.read_bytes() == b"mended"
    assert "  0x00000008  0 bytes, TOY0001 mark: \\x1b[mended" in result.stderr
    assert "1 record, 6 bytes; lost: 1 record, 24 bytes (22.43 % of 107)" in result.stderr
    # What it wrote is read back: no record of the format.
    assert f"{out} still has findings of lost data: TOY0001 (1)" in result.stderr


def test_what_a_salvage_leaves_is_reported_and_makes_the_exit_status(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where the format's own salvage says nothing."""

    def own(capture: Capture, sink: Sink, options: Mapping[str, Any]) -> Iterator[Loss]:
        sink.write(b"odd")
        yield from ()

    monkeypatch.setattr(toy, "WRITER", attrs.evolve(toy.WRITER, salvage=own))
    host = Host(discover=False)
    host.register(toy, name="toy", distribution="toys", version="2.0")
    sound = tmp_path / "sound.toy"
    sound.write_bytes(toy.toy(MARK, toy.record(9)))
    out = tmp_path / "out.toy"
    result = run_cli("salvage", "--json", sound, out, host=host)
    assert result.exit_code == ExitCode.FINDINGS
    document = result.json()
    assert document["remaining"]
    assert document["records"]["written"] == 1


def test_a_report_of_very_many_losses_lists_the_first_ones_and_counts_all(tmp_path: Path) -> None:
    """Each of 15,000 words of a container is a loss of its own."""
    path = tmp_path / "zeros.fxllog"
    path.write_bytes(b"\x89FXLLOG\n" + (1).to_bytes(8, "little") + bytes(60_000))
    report = fxf.salvage(path, tmp_path / "a.fxllog")
    assert report.count == sum(report.counts.values()) == report.lost_records == 15_000
    assert report.lost_bytes == 60_000
    assert len(report.losses) == 10_000
    assert [loss.offset for loss, _ in report.losses[:3]] == [16, 20, 24]
    done = run_cli("salvage", path, tmp_path / "c.fxllog", "--json")
    found = done.json()
    assert found["loss_counts"] == report.counts
    assert len(found["losses"]) == len(report.losses)
    shown = run_cli("salvage", "-v", path, tmp_path / "d.fxllog")
    assert "… and 5,000 more (the first 10,000 are listed)" in shown.stderr


def test_messages_about_one_byte_are_singular(tmp_path: Path) -> None:
    from fxframework.kit.salvage import Loss

    assert Loss(0, 1, "damaged", "1 bytes are not a record; left out").message == (
        "1 byte is not a record; left out"
    )
    assert Loss(0, 21, "damaged", "21 bytes are not a record").message.startswith("21 bytes are")

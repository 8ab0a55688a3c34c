"""`cat --follow`: what stands in a file, and then what is appended to it."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import toy
import toy_log
from toy_log import alias, log

from fxframework.cli import INTERRUPTED
from fxframework.cli import follow as follow_module
from fxframework.errors import ExitCode
from fxframework.host import Host
from fxframework.testing.cli import CliResult, run_cli

Step = Callable[[], object] | bytes
Follow = Callable[..., tuple["CliResult", list[str]]]
WITH_TOY = """
import sys
sys.path.insert(0, {core!r})
import toy_log
from fxframework.cli import main
from fxframework.host import default_host
default_host().register(toy_log, name="toylog")
sys.exit(main())
"""


@pytest.fixture
def path(host: Host, tmp_path: Path) -> Path:
    """A log, and a host that reads it."""
    host.register(toy_log, name="toylog")
    assert not host.failures
    path = tmp_path / "a.toylog"
    path.write_bytes(log("first", 1, component="x"))
    return path


@pytest.fixture
def followed(host: Host, path: Path, monkeypatch: pytest.MonkeyPatch) -> Follow:
    """Follows the log; between two looks the next step is done, and at last it is interrupted.

    A step is what is appended, or a function. What each look printed is given, too.
    """

    def run(*steps: Step, options: Iterable[object] = ()) -> tuple[CliResult, list[str]]:
        left = list(steps)
        seen: list[bytes] = []

        def wait() -> None:
            seen.append(sys.stdout.buffer.getvalue())  # type: ignore[attr-defined]
            if not left:
                raise KeyboardInterrupt
            step = left.pop(0)
            if callable(step):
                step()
            else:
                with path.open("ab") as file:
                    file.write(step)

        monkeypatch.setattr(follow_module, "pause", wait)
        result = run_cli("cat", "--follow", *options, path, host=host)
        parts = [later[len(before) :] for before, later in zip([b"", *seen], seen, strict=False)]
        return result, [part.decode() for part in parts]

    return run


def test_what_is_appended_is_printed_as_it_comes(path: Path, followed: Follow) -> None:
    result, looks = followed(b"", log("second", 2) + log("third", 3), log("fourth", 4))
    assert looks == [
        "1 x: first\n",
        "",
        "2 None: second\n3 None: third\n",
        "4 None: fourth\n",
    ]
    assert (result.exit_code, result.stderr) == (INTERRUPTED, "")


def test_half_a_record_waits_for_its_rest(path: Path, followed: Follow) -> None:
    line = log("split", 2)
    result, looks = followed(line[:7], b"", line[7:-1], line[-1:] + line[:3], line[3:])
    assert looks[1:4] == ["", "", ""]
    assert looks[4:] == ["2 None: split\n", "2 None: split\n"]
    assert result.stderr == ""


def test_the_file_may_begin_with_half_a_record(path: Path, followed: Follow) -> None:
    line = path.read_bytes()
    path.write_bytes(line[:9])
    _, looks = followed(line[9:])
    assert looks == ["", "1 x: first\n"]


def test_the_file_may_be_empty_at_first(path: Path, followed: Follow) -> None:
    path.write_bytes(b"")
    result, looks = followed(log("first", 1))
    assert looks == ["", "1 None: first\n"]
    assert result.stderr == ""


def test_later_records_know_what_was_said_before(path: Path, followed: Follow) -> None:
    _, looks = followed(
        alias("x", "core/x") + log("a", 2, component="x"), alias("y", "core/y"),
        log("b", 3, component="x") + log("c", 4, component="y"),
        alias("x", "core/z") + log("d", 5, component="x"), log("e", 6, component="x"),
    )  # fmt: skip
    assert "".join(looks) == (
        "1 x: first\n2 core/x: a\n3 core/x: b\n4 core/y: c\n5 core/z: d\n6 core/z: e\n"
    )


def test_arguments_are_those_of_their_logs(path: Path, followed: Follow) -> None:
    _, looks = followed(log("a", 2, args={"n": 1}), alias("x", "y"), log("b", 3, args={"n": 2}))
    assert [looks[1], looks[3]] == ["2 None: a n=1\n", "3 None: b n=2\n"]


def test_records_have_their_places_in_the_file(host: Host, path: Path, followed: Follow) -> None:
    parts = (alias("x", "y"), b"\n" + log("b", 2), b"dam", b"age\n", log("c", 3)[:5])
    result, looks = followed(*parts, options=["--records"])
    path.write_bytes(path.read_bytes()[:-5])
    assert result.stdout == run_cli("cat", "--records", path, host=host).stdout
    assert looks[3] == looks[5] == ""
    assert f"a.toylog @ 0x{path.stat().st_size - 7:08x}: a line is no log: no log" in result.stderr


def test_filters_choose_of_what_comes(path: Path, followed: Follow) -> None:
    lines = log("low", 2, severity=0x10) + log("high", 3, severity=0x60, tags=["t"])
    for options in (["--severity", "warn"], ["--records", "--severity", "warn"]):
        path.write_bytes(log("first", 1, severity=0x50))
        _, looks = followed(lines, log("low", 4), lines, options=options)
        assert [look.count("\n") for look in looks] == [1, 1, 0, 1]
    _, looks = followed(lines, options=["--tag", "T"])
    assert looks[1] == "3 None: high\n"


def test_times_count_from_the_first_of_the_file(path: Path, followed: Follow) -> None:
    _, looks = followed(log("a", 5), log("b", 6), log("c", 9),
                        options=["--since", "5ns", "--until", "8ns"])  # fmt: skip
    assert looks == ["", "", "6 None: b\n", ""]


def test_a_file_that_is_cut_short_is_begun_anew(path: Path, followed: Follow) -> None:
    result, looks = followed(
        log("second", 2), lambda: path.write_bytes(log("new", 7)), log("more", 8)
    )
    assert "".join(looks[2:]) == "7 None: new\n8 None: more\n"
    assert "a.toylog was cut short: it is shown from its beginning" in result.stderr


def test_a_file_that_is_replaced_is_begun_anew(path: Path, followed: Follow) -> None:
    old = path.with_name("old")

    def rename() -> None:
        with path.open("ab") as file:
            file.write(log("second", 2))
        path.rename(old)

    def go_on() -> None:
        with old.open("ab") as file:
            file.write(log("last", 3))

    def begin() -> None:
        path.write_bytes(log("new", 4) + log("newer", 5))

    result, looks = followed(rename, go_on, begin, log("more", 6))
    assert "".join(looks).split("\n") == [
        "1 x: first",
        "2 None: second",
        "3 None: last",
        "4 None: new",
        "5 None: newer",
        "6 None: more",
        "",
    ]
    assert result.stderr.count("was replaced") == 1


def test_a_file_that_comes_back_goes_on(path: Path, followed: Follow) -> None:
    other = path.with_name("other")
    result, looks = followed(
        lambda: path.rename(other), lambda: other.rename(path), log("second", 2)
    )
    assert "".join(looks) == "1 x: first\n2 None: second\n"
    assert result.stderr == ""


def test_a_new_file_is_of_the_same_format(path: Path, followed: Follow) -> None:
    """However little stands there yet."""
    path.write_bytes(b'{"message"')  # what a sniffer could not tell

    def begin() -> None:
        path.unlink()
        path.write_bytes(b"")

    _, looks = followed(begin, log("new", 3), options=["-f", "toylog"])
    assert "".join(looks) == "3 None: new\n"


def test_much_at_once_is_read_in_pieces(
    path: Path, followed: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow_module, "PIECE", 50)
    lines = [log("m" * (at % 90), at) for at in range(1, 60)]
    _, looks = followed(b"".join(lines), lines[0])
    assert looks[1].splitlines() == [f"{at} None: {'m' * (at % 90)}" for at in range(1, 60)]
    assert looks[2] == "1 None: m\n"


def test_strict_stops_at_a_loss_and_not_at_half_a_record(path: Path, followed: Follow) -> None:
    result, _ = followed(log("second", 2)[:5], log("second", 2)[5:] + b"damage\n",
                             options=["--strict"])  # fmt: skip
    assert result.exit_code == ExitCode.FAILED
    assert "FXF0004" in result.stderr
    assert result.text == "1 x: first\n2 None: second\n"


def test_many_losses_are_counted(path: Path, followed: Follow) -> None:
    result, _ = followed(b"damage\n" * 20)
    assert result.stderr.count(": no log") == follow_module.LISTED
    assert "15 losses more" in result.stderr


def test_what_cannot_be_followed_is_refused(
    host: Host, path: Path, sample: Path, tmp_path: Path
) -> None:
    packed = tmp_path / "a.toylog.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    lines = tmp_path / "a.jsonl"
    run_cli("convert", path, lines, host=host)
    for arguments, told in (
        (["-"], "--follow needs a file that grows"),
        ([tmp_path], "--follow needs a file that grows"),
        (["toylog:-"], "--follow needs a file that grows"),
        ([sample], "toy captures cannot be followed"),
        ([packed], "cannot be followed"),
        ([lines], "cannot be followed"),
        (["--table", "logs", path], "--table"),
        (["--json", path], "--json"),
        (["--severity", "no", path], "unknown severity"),
        (["--thread", "main", path], "--pid"),
    ):
        done = run_cli("cat", "-F", *arguments, host=host)
        assert (done.exit_code, done.stdout) == (ExitCode.USAGE, b""), arguments
        assert told in done.stderr
    missing = run_cli("cat", "-F", tmp_path / "none.toylog", host=host)
    assert missing.exit_code == ExitCode.FAILED


@pytest.mark.parametrize("ending", ["interrupt", "pipe"])
def test_of_a_process(path: Path, ending: str) -> None:
    """With the real pause: what another process appends comes out, and the end is quiet."""
    code = WITH_TOY.format(core=str(Path(toy.__file__).parent))
    process = subprocess.Popen([sys.executable, "-c", code, "cat", "-F", str(path)],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    with process, path.open("ab", buffering=0) as file:
        assert process.stdout.readline() == b"1 x: first\n"
        file.write(log("second", 2)[:10])
        time.sleep(follow_module.POLL)
        file.write(log("second", 2)[10:])
        assert process.stdout.readline() == b"2 None: second\n"
        if ending == "interrupt":
            os.kill(process.pid, signal.SIGINT)
        else:
            process.stdout.close()
            while process.poll() is None:
                file.write(log("more", 3))
                time.sleep(follow_module.POLL)
        assert process.stderr.read() == b""
        assert process.wait() == (INTERRUPTED if ending == "interrupt" else ExitCode.OK)

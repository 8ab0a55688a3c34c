"""The plugin of pytest: its fixtures work in a test of anybody's, and it costs others nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULE = "fxframework.testing.pytest_plugin"


def run(folder: Path, *arguments: str, test: str = "", plugin: str = MODULE) -> str:
    """What pytest says of a test module, in a process of its own."""
    if test:
        (folder / "test_it.py").write_text(textwrap.dedent(test))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", plugin, *arguments],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def test_every_fixture(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        '[scenario]\nname = "s"\nseed = 3\n[[step]]\ndo = "target.archive"\nas = "a.fxt"\n'
        '[[step]]\ndo = "golden.compare"\noutput = "a.fxt"\n'
    )
    test = """
        import pytest


        @pytest.mark.emulated_target(seed=5, cpus=2)
        def test_target(emulated_target):
            assert (emulated_target.seed, len(emulated_target.processor)) == (5, 2)


        def test_vmo(vmo, emulated_target):
            first, second = vmo(), vmo(8192, name="mine")
            first.store_u64(8, 3)
            assert (first.load_u64(8), second.size) == (3, 8192)
            assert "mine" in emulated_target.devices


        def test_trace_buffer(trace_buffer):
            from fx_trace.write.writer import TraceWriter

            buffer = trace_buffer(4096, "circular")
            assert TraceWriter(buffer, ticks_per_second=1).instant("c", "n", timestamp=1)
            assert buffer.memory.size == 4096


        def test_crashtest(crashtest):
            assert crashtest(lambda m: m.store_u64(0, 1), lambda image: None, size=8).images == 2


        def test_crashtest_fails(crashtest):
            def check(image):
                assert not image[0]

            crashtest(lambda m: m.store_u64(0, 1), check, size=8)


        def test_replay(replay):
            assert "a.fxt" in replay("s.toml").outputs


        def test_replay_of_another_seed(replay, tmp_path):
            report = replay("s.toml", seed=4, out=tmp_path / "out", check=False)
            assert report.steps[-1].status == "skipped"
            assert (tmp_path / "out" / "a.fxt").exists()
    """
    said = run(tmp_path, "--fxf-update-golden", "--strict-markers", "-W", "error", test=test)
    assert "1 failed, 6 passed" in said, said
    assert "after store 1, to byte 0" in said
    assert (tmp_path / "s.golden" / "a.fxt").exists()
    assert "1 failed, 6 passed" in run(tmp_path)
    (tmp_path / "s.golden" / "a.fxt").write_bytes(b"other")
    said = run(tmp_path)
    assert "2 failed, 5 passed" in said
    assert "step[1] golden.compare" in said


def test_the_mark_of_a_target_takes_what_a_scenario_does(tmp_path: Path) -> None:
    test = """
        import pytest


        @pytest.mark.emulated_target(start="2s", cpus=2, offsets=[0, -5])
        def test_texts(emulated_target):
            assert emulated_target.clock.monotonic_ns() == 2 * 10**9


        @pytest.mark.emulated_target(cpu=2)
        def test_faults(emulated_target):
            pass


        @pytest.mark.emulated_target(4)
        def test_position(emulated_target):
            pass
    """
    said = run(tmp_path, test=test)
    assert "1 passed, 2 errors" in said, said
    assert "target.cpu: there is no such parameter" in said
    assert "named parameters, such as emulated_target(seed=1)" in said


def test_a_run_that_does_not_use_it_imports_nothing(
    tmp_path: Path,
) -> None:
    test = """
        import sys


        def test_modules():
            loaded = {name for name in sys.modules if name.startswith(("fxframework", "fx_"))}
            # The package's own front, which loads nothing else, and the plugin.
            assert loaded <= {
                "fxframework", "fxframework.hookspecs", "fxframework.kit", "fxframework.kit.lazy",
                "fxframework.testing", "fxframework.testing.pytest_plugin",
            }
            assert not {"numpy", "attrs", "hypothesis", "orjson"} & sys.modules.keys()
    """
    assert "1 passed" in run(tmp_path, test=test)


def test_the_example_of_a_writer_of_ones_own(tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "test_my_writer.py", tmp_path)
    said = run(tmp_path, "test_my_writer.py")
    assert "4 passed" in said, said


def test_the_example_of_inspect_data_of_ones_own(tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "test_my_inspect.py", tmp_path)
    said = run(tmp_path, "test_my_inspect.py")
    assert "5 passed" in said, said


def test_the_kit_is_imported_piece_by_piece() -> None:
    import fxframework.testing as kit

    assert set(kit.__all__) <= set(dir(kit))
    for name in kit.__all__:
        assert getattr(kit, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        kit.nothing  # noqa: B018


def test_runs_are_held_against_stored_ones(tmp_path: Path) -> None:
    test = """
        import random

        import pytest
        from fx_trace.write.archive import Archive
        from fxframework.errors import UsageError

        def record(path, seed, slow=1.0):
            now, rng = 0, random.Random(seed)
            with Archive(path, force=True) as archive:
                app = archive.provider(1, "app")
                for _ in range(60):
                    length = int(rng.lognormvariate(8, 0.2) * slow)
                    app.duration_complete("demo", "work", now, now + length)
                    now += length
            return path

        def test_as_fast(no_slower_than, tmp_path):
            found = no_slower_than("golden/base.fxt", record(tmp_path / "a.fxt", 2))
            assert found.same

        def test_slower(no_slower_than, tmp_path):
            run = record(tmp_path / "b.fxt", 3, slow=1.5)
            no_slower_than("golden/base.fxt", run, fail_on=("more",))
            no_slower_than("golden/base.fxt", run)

        def test_nothing_is_stored(no_slower_than, tmp_path):
            no_slower_than("absent.fxt", record(tmp_path / "c.fxt", 4))

        def test_a_verdict_has_a_name(no_slower_than, tmp_path):
            with pytest.raises(UsageError, match="did you mean"):
                no_slower_than("golden/base.fxt", "x", fail_on="slow")
    """
    assert "1 passed" in run(tmp_path, "--fxf-update-golden", "-k", "fast", test=test)
    said = run(tmp_path)
    assert "2 failed, 2 passed" in said
    assert "absent.fxt does not exist: `pytest --fxf-update-golden` stores a run" in said
    assert "changed by 5% or more, beyond noise: 1 slower" in said

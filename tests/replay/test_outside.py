"""A scenario reads and writes files in its own folder only, unless it is trusted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fx_trace.sample import sample
from fxframework.errors import UsageError
from fxframework.host import Host
from fxframework.replay import ScenarioError, replay
from fxframework.testing.cli import run_cli

HEAD = '[scenario]\nname = "x"\n[[step]]\ndo = "target.archive"\nas = "a.fxt"\n'
GOLDEN = HEAD + '[[step]]\ndo = "golden.compare"\noutput = "a.fxt"\n'
REPLAYED = '[scenario]\nname = "x"\n[[step]]\ndo = "trace.replay"\nas = "b.fxt"\ncapture = '
DECODED = HEAD + '[[step]]\ndo = "capture.decode"\nfrom = "a.fxt"\nas = "a"\n'
EXPORTED = '[[step]]\ndo = "capture.export"\ncapture = "a"\npath = "o.fxt"\n'
PRECIOUS = b"precious"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a scenario; beside it are a file, a folder and a capture."""
    (tmp_path / "decoy").write_bytes(PRECIOUS)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.fxt").write_bytes(PRECIOUS)
    (tmp_path / "capture.fxt").write_bytes(sample(1000))
    folder = tmp_path / "scenario"
    (folder / "sub").mkdir(parents=True)
    return folder


def scenario(folder: Path, text: str) -> Path:
    path = folder / "s.toml"
    path.write_text(text)
    return path


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.parent.iterdir() if path.is_file()}


def golden_elsewhere(folder: Path, way: str) -> str:
    """The text of a scenario whose golden file is the precious one, reached in some way."""
    outside = folder.parent / "decoy"
    if way == "link":
        (folder / "link").symlink_to(outside)
        return GOLDEN + 'golden = "link"\n'
    if way == "link to a folder":
        (folder / "far").symlink_to(folder.parent, target_is_directory=True)
        return GOLDEN + 'golden = "far/decoy"\n'
    if way == "golden folder":
        (folder / "s.golden").symlink_to(folder.parent / "elsewhere", target_is_directory=True)
        return GOLDEN
    if way == "golden link":
        (folder / "s.golden").mkdir()
        (folder / "s.golden" / "a.fxt").symlink_to(outside)
        return GOLDEN
    named = {"parent": "../decoy", "dots": "sub/../../decoy", "absolute": str(outside)}[way]
    return GOLDEN + f'golden = "{named}"\n'


WAYS = ("parent", "dots", "absolute", "link", "link to a folder", "golden folder", "golden link")


@pytest.mark.parametrize("way", WAYS)
def test_a_golden_file_elsewhere_is_neither_written_nor_read(
    way: str, folder: Path, host: Host
) -> None:
    path = scenario(folder, golden_elsewhere(folder, way))
    before = files(folder)
    for update in (True, False):
        report = replay(path, host=host, update_golden=update)
        assert "outside of the scenario's folder" in report.failures[0].message
        assert "--allow-outside" in report.failures[0].message
    assert files(folder) == before
    assert (folder.parent / "elsewhere" / "a.fxt").read_bytes() == PRECIOUS


@pytest.mark.parametrize("way", WAYS)
def test_a_trusted_scenario_may(way: str, folder: Path, host: Host) -> None:
    path = scenario(folder, golden_elsewhere(folder, way))
    assert replay(path, host=host, update_golden=True, allow_outside=True).ok
    assert replay(path, host=host, allow_outside=True).ok


@pytest.mark.parametrize("way", ["parent", "absolute", "link"])
def test_a_capture_elsewhere_is_a_fault_of_the_scenario(way: str, folder: Path, host: Host) -> None:
    outside = folder.parent / "capture.fxt"
    (folder / "link.fxt").symlink_to(outside)
    named = {"parent": "../capture.fxt", "absolute": str(outside), "link": "link.fxt"}[way]
    path = scenario(folder, f'{REPLAYED}"{named}"\n')
    with pytest.raises(ScenarioError, match="outside of the scenario's folder"):
        replay(path, host=host)
    assert replay(path, host=host, allow_outside=True).ok
    done = run_cli("replay", path, "--out", folder / "out", host=host)
    assert done.exit_code == 2
    assert "--allow-outside" in done.stderr
    trusted = run_cli("replay", path, "--out", folder / "out", "--allow-outside", host=host)
    assert trusted.exit_code == 0, trusted.stderr


def test_a_capture_and_golden_files_within_the_folder(folder: Path, host: Host) -> None:
    shutil.copy(folder.parent / "capture.fxt", folder / "sub" / "capture.fxt")
    (folder / "link.fxt").symlink_to("sub/capture.fxt")
    assert replay(scenario(folder, f'{REPLAYED}"sub/../link.fxt"\n'), host=host).ok
    inside = scenario(folder, GOLDEN + 'golden = "sub/a.fxt"\n')
    assert replay(inside, host=host, update_golden=True).ok
    assert replay(inside, host=host).ok


@pytest.mark.parametrize("value", ["../decoy", "main,1=../decoy", "{absolute}"])
def test_options_of_a_reader_name_no_file_elsewhere(value: str, folder: Path, host: Host) -> None:
    named = value.format(absolute=folder.parent / "decoy")
    path = scenario(folder, DECODED + f'options = {{ instr_map = "{named}" }}\n')
    report = replay(path, host=host)
    assert "outside of the scenario's folder" in report.failures[0].message


@pytest.mark.parametrize("value", ["../new", "{absolute}"])
def test_options_of_an_exporter_write_nothing_elsewhere(
    value: str, folder: Path, host: Host
) -> None:
    named = value.format(absolute=folder.parent / "new")
    text = DECODED + EXPORTED + f'options = {{ names = "{named}" }}\n'
    report = replay(scenario(folder, text), host=host)
    assert "outside of the scenario's folder" in report.failures[0].message
    assert not (folder.parent / "new").exists()


def test_a_loop_of_links_is_no_file(folder: Path, host: Host) -> None:
    (folder / "loop").symlink_to("loop")
    path = scenario(folder, f'{REPLAYED}"loop"\n')
    with pytest.raises(UsageError, match="there is no file"):
        replay(path, host=host)

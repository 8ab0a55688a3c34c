"""A clone's own folder: `fxframework/` in it hides no installed package, editable or not."""

from __future__ import annotations

import pytest

from .environments import PACKAGES, ROOT, Environment, clone, editable

PROGRAM = "import {names}; print(fxframework.open('{path}').format)"


@pytest.fixture(scope="module")
def in_place(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An editable install in a clone."""
    pytest.importorskip("hatchling")
    pytest.importorskip("editables")
    folder = clone(tmp_path_factory.mktemp("editable") / "clone")
    return editable(folder / ".venv", folder)


def test_an_editable_install_is_the_clone(in_place: Environment) -> None:
    here = in_place.folder.parent
    program = PROGRAM.format(
        names=", ".join(PACKAGES), path="examples/scenarios/boot.golden/boot.fxt"
    )
    (here / "program.py").write_text(program)
    for command in ("python program.py", f'python -c "{program}"', "fxf doctor"):
        done = in_place.shell(command, here)
        assert done.status == 0, (command, done.stderr)
    for name in PACKAGES:
        done = in_place.shell(f'python -c "import {name}; print({name}.__path__)"', here)
        assert done.stdout.startswith(f"['{here}/"), name
        assert done.stdout.rstrip().endswith(f"/{name}']"), name


def test_the_folders_of_a_clone_hide_no_package() -> None:
    """Python takes a folder without `__init__.py` for a package only where it finds no other."""
    for folder in ROOT.iterdir():
        assert not (folder / "__init__.py").exists(), folder.name

"""A plugin with a kernel, as its author has it: made from the template, built and tested apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from fxframework.kernels import building, kernel
from fxframework.kernels.native import is_compiled

from ..properties import FEW
from .environments import Environment, core, quick_compiler, with_requirements

BUILDS = ("setuptools", "Cython")
TESTS = ("pytest", "hypothesis")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """A core install, with what builds and tests a plugin."""
    made = core(tmp_path_factory.mktemp("author") / "env")
    for distribution in with_requirements(*BUILDS, *TESTS):
        made.link(distribution)
    return made


@pytest.mark.slow
@pytest.mark.skipif(not is_compiled(kernel.__name__), reason="the framework's kernels are plain")
@pytest.mark.skipif(not building.has_compiler(), reason="there is no C compiler")
def test_a_kernel_of_the_template_is_built_on_kernels_of_the_framework(
    environment: Environment, tmp_path: Path
) -> None:
    """Takes seconds: one build and one run of its tests, apart from this checkout."""
    compiler = " ".join(f"{name}={path}" for name, path in quick_compiler(tmp_path).items())

    def run(command: str, folder: Path = tmp_path) -> str:
        done = environment.shell(f"PYTHONPATH={tmp_path}/fx-pulse {command}", folder)
        assert done.status == 0, done.stdout + done.stderr
        return done.stdout

    run("fxf new-plugin kernel pulse")
    project = tmp_path / "fx-pulse"
    assert "fxframework.kernels.maps import PairMap" in (
        project / "fx_pulse/read/scan.py"
    ).read_text("utf-8")
    assert not list(project.rglob("*.pxd"))
    run(f"{compiler} FXF_NATIVE=require python setup.py -q build_ext --inplace egg_info", project)
    assert [path.suffix for path in (project / "fx_pulse").rglob("scan.*.*")] == [".so"]
    assert not list((project / "fx_pulse").rglob("*.pxd"))
    (line,) = (line for line in run("fxf doctor").splitlines() if "kernels of fx_pulse" in line)
    assert line.split()[-1] == "compiled"
    (project / "few.py").write_text(FEW)
    assert " passed" in run("python -m pytest -q -p few -p no:cacheprovider", project)
    run("python -c \"import fx_pulse.sample as s; open('a.pulse', 'wb').write(s.sample(4000))\"")
    assert "findings  none" in run("fxf a.pulse")

"""How kernels are found: compiled, plain, or refused; and what is said of stale ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import fxframework
from fxframework.kernels import native
from fxframework.testing.kernels import plain_kernels

COMPILED = native.state_of("fxframework").how == "compiled"
WHERE = "from fxframework.kernels import maps; print(maps.__file__)"


def python(code: str, wish: str | None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "FXF_NATIVE"}
    if wish is not None:
        environment["FXF_NATIVE"] = wish
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )


def test_never_imports_the_sources() -> None:
    assert python(WHERE, "never").stdout.strip().endswith("maps.py")


@pytest.mark.skipif(not COMPILED, reason="the kernels are not compiled here")
@pytest.mark.parametrize("wish", [None, "require"])
def test_compiled_kernels_are_imported(wish: str | None) -> None:
    assert not python(WHERE, wish).stdout.strip().endswith(".py")


@pytest.mark.parametrize("value", ["no", "1"])
def test_a_wrong_wish_is_refused(value: str) -> None:
    result = python("import fxframework", value)
    assert result.returncode
    assert "it can be 'never' or 'require'" in result.stderr


KERNEL = """from fxframework.kernels.annotations import i64

class Loop:
    rows: i64

    def step(
        self, first: i64
    ) -> i64:
        return first
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "somewhere"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "loops.py").write_text(KERNEL)
    (folder / "ordinary.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("FXF_NATIVE", raising=False)
    return str(folder)


def test_require_refuses_a_plain_kernel(package: str) -> None:
    finder = native.KernelFinder("require")
    with pytest.raises(ImportError, match="FXF_NATIVE=require asks for it"):
        finder.find_spec("somewhere.loops", [package])
    assert finder.find_spec("somewhere.ordinary", [package]) is None
    Path(package, f"loops{native.EXTENSIONS[0]}").touch()
    assert finder.find_spec("somewhere.loops", [package]) is None
    spec = native.KernelFinder("never").find_spec("somewhere.loops", [package])
    assert spec is not None
    assert spec.origin == str(Path(package, "loops.py"))


@pytest.mark.parametrize("wish", ["never", "require"])
def test_other_modules_are_left_alone(wish: str, tmp_path: Path) -> None:
    (tmp_path / "nodes.py").write_text("# fxframework.kernels.annotations import\n")
    assert native.KernelFinder(wish).find_spec("fx_a.nodes", [str(tmp_path)]) is None


def test_the_state_of_a_package(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "BUILD_NOTE", Path(package, "build.txt"))
    assert native.kernels_of("somewhere") == {"somewhere.loops": Path(package, "loops.py")}
    state = native.state_of("somewhere")
    assert state == ("plain", "it was not compiled during installation")
    Path(package, "build.txt").write_text("no compiler\n")
    assert native.state_of("somewhere") == ("plain", "no compiler")
    Path(package, f"loops{native.EXTENSIONS[0]}").touch()
    assert native.state_of("somewhere") == ("compiled", "")
    monkeypatch.setenv("FXF_NATIVE", "never")
    assert native.state_of("somewhere") == ("plain", "FXF_NATIVE=never is set")
    assert native.state_of("json") == native.state_of("no_such_package") == ("none", "")


EDITED = {
    "somewhere/loops.py": ("return first", "return 1 + first"),
    "somewhere/shared.py": ("rows: i64", "lines: i64"),
    "other/deep.py": ("self, first: i64", "self, first: i64, last: i64"),
    "other/numbers.py": ("ONE = 1", "ONE = 2"),
}
"""What makes a compiled kernel stale, in each of its sources."""


@pytest.mark.parametrize("name", EDITED)
def test_an_edited_source_is_noticed(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(package).parent
    compiled = Path(package, f"loops{native.EXTENSIONS[0]}")
    compiled.touch()
    for each in ("somewhere", "other"):
        module = ModuleType(each)
        module.__path__ = [str(folder / each)]
        monkeypatch.setitem(sys.modules, each, module)
    (folder / "other").mkdir()
    for each in ("somewhere/shared.py", "other/deep.py"):
        (folder / each).write_text(KERNEL)
    (folder / "other" / "numbers.py").write_text("ONE = 1\n")
    uses = ("somewhere.shared", "other.deep", "other.numbers")
    digest = native.digest_of([str(folder / each) for each in EDITED])
    later = compiled.stat().st_mtime_ns + 10**9

    def edit(before: str, after: str) -> None:
        text = (folder / name).read_text()
        assert before in text
        (folder / name).write_text(text.replace(before, after))
        os.utime(folder / name, ns=(0, later))

    def register() -> None:
        native.register("somewhere.loops", str(compiled), digest, uses)

    try:
        register()
        assert not native.stale_kernels("json")
        # Newer, and the same: as after a checkout.
        os.utime(folder / name, ns=(0, later))
        register()
        assert not native.COMPILED["somewhere.loops"]
        if name in {"somewhere/shared.py", "other/deep.py"}:
            # What is not declared is of no interest to the kernels that use it.
            edit("return first", "return 2 + first")
            register()
            assert not native.COMPILED["somewhere.loops"]
        edit(*EDITED[name])
        with pytest.warns(
            native.StaleKernelWarning, match=re.escape(f"older than {folder / name}")
        ):
            register()
        assert native.COMPILED["somewhere.loops"]
        (folder / name).unlink()
        register()
    finally:
        native.COMPILED.pop("somewhere.loops", None)


def test_plain_kernels_stand_beside_compiled_ones() -> None:
    from fxframework.kernels import maps

    with plain_kernels():
        import fxframework as other
        from fxframework.kernels import maps as plain

        assert other is not fxframework
        assert str(plain.__file__).endswith(".py")
    assert sys.modules["fxframework"] is fxframework
    assert sys.modules["fxframework.kernels.maps"] is maps
    with plain_kernels():
        from fxframework.kernels import maps as again
    assert again is plain

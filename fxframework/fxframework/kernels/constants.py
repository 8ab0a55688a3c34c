"""Numbers and fields that the names of modules stand for, computed when kernels are built.

The statements that bind a name in a kernel are run, with all that they need. Modules that are no
kernels are imported, without the ``__init__`` of their packages. Both happens in a process of its
own.
"""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from fxframework.kernels.native import is_kernel

__all__ = ["Constants", "Sources", "Statements"]

PROGRAM = """
import sys, types
package = sys.modules["fxframework"] = types.ModuleType("fxframework")
package.__path__ = [sys.argv[1]]
from fxframework.kernels.headers import answer
answer()
"""
"""The process: the package around the module is not imported."""


class Names(Protocol):
    """The names of a kernel: where they are imported from, and the statements that bind them."""

    imports: dict[str, tuple[str, str | None]]
    assigned: dict[str, ast.stmt]


class Sources(Protocol):
    """Where the sources of modules are (``headers.Kernels``)."""

    roots: dict[str, Path]

    def path_of(self, name: str) -> Path | None:
        """Return the path of a module's source."""

    def raw(self, name: str, path: Path) -> Names:
        """Return the names of a kernel."""


class Constants:
    """Asks the process for numbers."""

    def __init__(self, kernels: Sources) -> None:
        self.kernels = kernels
        self._values: dict[str, dict[str, int | float | str | list[int] | None]] = {}
        self._process: subprocess.Popen[str] | None = None

    def value(self, module: str, name: str) -> int | float | str | list[int] | None:
        """Return a number, or the lowest bit and the greatest value of a field.

        None stands for other objects, a text says why the name cannot be computed.
        """
        known = self._values.setdefault(module, {})
        if name not in known:
            known[name] = self._ask(module, name)
        return known[name]

    def _ask(self, module: str, name: str) -> int | float | str | list[int] | None:
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-P", "-B", "-c", PROGRAM, str(Path(__file__).parents[1])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: S101,PT018
        self.kernels.path_of(module)
        roots = {top: str(folder) for top, folder in self.kernels.roots.items()}
        self._process.stdin.write(json.dumps([roots, module, name]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        return json.loads(answer) if answer else "the process ended"

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()
            self._process = None


class Statements:
    """Computes constants: runs what binds a name in a kernel, and imports other modules."""

    def __init__(self, kernels: Sources) -> None:
        self.kernels = kernels
        self._spaces: dict[str, dict[str, Any]] = {}
        sys.meta_path.insert(0, self)

    def find_spec(
        self,
        name: str,
        path: object = None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Return the spec of a module's source, and packages without their ``__init__``."""
        top, *inside = name.split(".")
        if top not in self.kernels.roots:
            return None
        place = self.kernels.roots[top].joinpath(*inside)
        if place.is_dir():
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [str(place)]
            return spec
        source = f"{place}.py"
        return spec_from_file_location(name, source, loader=SourceFileLoader(name, source))

    def value(self, module: str, name: str) -> object:
        """Return the value of a name of a module."""
        path = self.kernels.path_of(module)
        if path is None or not is_kernel(path.read_bytes()):
            return getattr(importlib.import_module(module), name)
        space = self._spaces.setdefault(module, {"__name__": module})
        if name in space:
            return space[name]
        kernel = self.kernels.raw(module, path)
        if name in kernel.imports:
            found, inside = kernel.imports[name]
            space[name] = importlib.import_module(found) if inside is None else (
                self.value(found, inside)
            )  # fmt: skip
        elif name in kernel.assigned:
            statement = kernel.assigned[name]
            names: set[str] = set()
            for part in ast.walk(statement):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                    names.add(part.id)
            for needed in sorted(names & (kernel.imports.keys() | kernel.assigned.keys())):
                self.value(module, needed)
            exec(compile(ast.Module([statement], []), str(path), "exec"), space)  # noqa: S102
        else:
            raise AttributeError(f"{module} has no {name}")
        return space[name]

    def answer(self) -> None:
        """Answer the questions of a ``Constants``, one a line."""
        for line in sys.stdin:
            roots, module, name = json.loads(line)
            self.kernels.roots.update({top: Path(folder) for top, folder in roots.items()})
            try:
                found = self.value(module, name)
                low, limit = getattr(found, "low", None), getattr(found, "limit", None)
                plain: object = found if isinstance(found, int | float) else None
                if isinstance(low, int) and isinstance(limit, int):
                    plain = [low, limit]
            except Exception as problem:  # noqa: BLE001 (what a module does when it is imported)
                plain = f"{type(problem).__name__}: {problem}"
            print(json.dumps(plain), flush=True)  # noqa: T201

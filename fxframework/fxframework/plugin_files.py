"""Plugin files: modules that are plugins without a package, named by a variable or an option.

The environment variable ``FXF_PLUGIN_PATH`` names files by their absolute paths, separated like
those of ``PATH``; ``fxf --plugin FILE`` adds one. Nothing else is loaded: not the current folder,
nor the folder of an input.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

from fxframework.errors import PluginError, UsageError

VARIABLE = "FXF_PLUGIN_PATH"
"""The environment variable."""
PREFIX = "fxf_plugin_"
"""Prefix of the names of their modules, so that they hide no other module."""


def listed(environ: Mapping[str, str]) -> list[str]:
    """Return the files that the variable names, each once; an empty entry names none."""
    entries = environ.get(VARIABLE, "").split(os.pathsep)
    return list(dict.fromkeys(entry for entry in entries if entry))


def stamp(environ: Mapping[str, str]) -> tuple[tuple[str, int], ...]:
    """Return the files with the times (ns) of their last change; 0 for one that is not there."""
    changes = []
    for path in listed(environ):
        changed_ns = 0
        with contextlib.suppress(OSError, ValueError):
            changed_ns = os.stat(path).st_mtime_ns  # noqa: PTH116 (bytes of any name)
        changes.append((path, changed_ns))
    return tuple(changes)


def add(files: Iterable[str]) -> None:
    """Add files to the variable of this process, which later processes inherit.

    Raises UsageError for a path without a file, and for one that the variable cannot hold.
    """
    paths = listed(os.environ)
    for file in files:
        path = os.path.abspath(file)  # noqa: PTH100 (do not resolve links)
        if not Path(path).is_file():
            raise UsageError(
                "there is no such plugin file", path=file, remedy="--plugin takes a Python module"
            )
        if os.pathsep in path:
            raise UsageError(
                f"the path of a plugin cannot contain {os.pathsep!r}",
                path=file,
                remedy="move the file to another folder",
            )
        paths.append(path)
    os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys(paths))


@contextlib.contextmanager
def restored() -> Iterator[None]:
    """Restore the present value of the variable at the end."""
    value = os.environ.get(VARIABLE)
    try:
        yield
    finally:
        if value is not None:
            os.environ[VARIABLE] = value
        else:
            os.environ.pop(VARIABLE, None)


def module_name(path: str) -> str:
    """Return the name of a file's module."""
    return PREFIX + re.sub(r"\W", "_", Path(path).stem)


def folder_of(package: str) -> str:
    """Return the folder that contains an imported module or package; "" if it is not a file."""
    module = sys.modules.get(package)
    file = getattr(module, "__file__", None)
    if file is None:
        return ""
    folder = Path(file).parent
    if hasattr(module, "__path__"):
        folder = folder.parent
    return str(folder)


def load(path: str) -> ModuleType:
    """Run a file as a module. Raises PluginError if it is not one, and what the module raises."""
    file = Path(path)
    if not file.is_absolute():
        raise PluginError(f"{VARIABLE} takes absolute paths", remedy="or give it with --plugin")
    if file.suffix != ".py" or not file.is_file():
        raise PluginError("there is no such Python module (.py)", remedy=f"correct {VARIABLE}")
    name = module_name(path)
    module = ModuleType(name)
    module.__file__ = path
    # No loader of importlib: it would leave compiled files beside the plugin.
    code = compile(file.read_bytes(), path, "exec")
    previous_module = sys.modules.get(name)
    sys.modules[name] = module
    try:
        exec(code, vars(module))  # noqa: S102 (the user named the file)
    except BaseException:
        if previous_module is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = previous_module
        raise
    return module

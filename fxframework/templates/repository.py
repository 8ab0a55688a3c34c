"""Repository: a new plugin's files, made of the templates of its kind.

A template is a file in a folder of this package, whose name ends in ``.in``; ``$word`` in it is
replaced (``string.Template``). Folders that later ones of a kind replace files of come first.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import string
import tempfile
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import attrs

from fxframework.errors import UsageError, WriteRefusedError
from fxframework.hookspecs import API

__all__ = ["KINDS", "Name", "render", "write"]

KINDS: Mapping[str, tuple[str, ...]] = {
    "format": ("common", "format"),
    "exporter": ("common", "exporter"),
    "step": ("common", "step"),
    "device": ("common", "device"),
    "kernel": ("common", "format", "kernel"),
}
"""The folders of templates of each kind of plugin."""
SUFFIX = ".in"
PREFIX = "fx-"
"""What the names of distributions begin with."""
PACKAGE = "PACKAGE"
"""A folder that is called as the package is."""
DOT = "dot-"
"""What stands for the dot of a hidden file, so that none of these files is one."""
MOST = 32
"""Characters of a name."""


@attrs.frozen
class Name:
    """The name of a plugin, and what follows from it."""

    slug: str
    """As formats, exporters and steps are called: ``heart-beats``."""

    @classmethod
    def parse(cls, text: str) -> Name:
        """The normalized name (PEP 503), without ``fx-``. Raises UsageError for an invalid one."""
        slug = re.sub(r"[-_.]+", "-", text).lower().removeprefix(PREFIX)
        if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", slug) or len(slug) > MOST:
            raise UsageError(
                f"{text!r} cannot be the name of a plugin",
                remedy="give a letter, then letters, digits and single dashes or underscores, "
                f"{MOST} at most, such as beats or heart-beats",
            )
        return cls(slug)

    @property
    def distribution(self) -> str:
        """What pip installs, and the folder of the repository."""
        return f"{PREFIX}{self.slug}"

    @property
    def package(self) -> str:
        """What Python imports."""
        return self.distribution.replace("-", "_")

    @property
    def words(self) -> Mapping[str, str]:
        """What is replaced in templates, by name."""
        letters = re.sub(r"[^A-Z]", "", self.slug.upper())
        return {
            "name": self.slug,
            "distribution": self.distribution,
            "package": self.package,
            "prefix": self.slug.replace("-", "_"),
            "suffix": self.slug.replace("-", ""),
            "Class": "".join(word.capitalize() for word in self.slug.split("-")),
            "Title": self.slug.replace("-", " ").capitalize(),
            "CODE": f"{letters}XXX"[:4],
        }


def render(kind: str, name: Name) -> dict[str, str]:
    """The files of a repository by their paths in it. KeyError for an unknown kind."""
    files: dict[str, str] = {}
    words = name.words
    for folder in KINDS[kind]:
        for path, text in _templates(resources.files(__package__) / folder):
            place = path.removesuffix(SUFFIX).replace(PACKAGE, name.package).replace(DOT, ".")
            files[place] = string.Template(text).substitute(words, API=API)
    return dict(sorted(files.items()))


def _templates(folder: Traversable, within: str = "") -> list[tuple[str, str]]:
    """Every template in a folder, by its path there."""
    found: list[tuple[str, str]] = []
    for each in folder.iterdir():
        if each.is_dir():
            found += _templates(each, f"{within}{each.name}/")
        elif each.name.endswith(SUFFIX):
            found.append((within + each.name, each.read_text("utf-8")))
    return found


def write(files: Mapping[str, str], target: Path) -> None:
    """Write a repository into a folder that does not exist yet: all of it, or nothing.

    Raises WriteRefusedError where something has that name already, or the folder that it is to be
    in cannot be written.
    """
    if target.exists() or target.is_symlink():
        raise WriteRefusedError(
            "it already exists", path=str(target), remedy="choose another name, or another --into"
        )
    try:
        work = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    except OSError as error:
        raise WriteRefusedError(
            f"cannot write there: {error.strerror or error}",
            path=str(target.parent),
            remedy="name a folder that exists with --into",
        ) from error
    with contextlib.ExitStack() as undo:
        undo.callback(shutil.rmtree, work, ignore_errors=True)
        whole = work / target.name
        for path, text in files.items():
            file = whole / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
        whole.rename(target)

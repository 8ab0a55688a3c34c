"""Repository: makes the files of a new plugin from the templates of its kind.

A template is a text ``NAME.in`` in this package with the files of a repository, each after a line
``-- PATH --``; each ``$word``, also in paths, is replaced (``string.Template``).
"""

from __future__ import annotations

import contextlib
import re
import shutil
import string
import tempfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

import attrs

from fxframework.errors import OutputError, UsageError, WriteRefusedError
from fxframework.hookspecs import API

KINDS: Mapping[str, tuple[str, ...]] = {
    "format": ("common", "format"),
    "exporter": ("common", "exporter"),
    "step": ("common", "step"),
    "device": ("common", "device"),
}
"""Templates by kind of plugin."""
SMALL: Mapping[str, tuple[str, ...]] = {"format": ("format-small",)}
"""Templates of one module and its test, by kind of plugin."""
FILE = re.compile(r"^-- (\S+) --\n", re.MULTILINE)
"""The line before a file in a template."""
PREFIX = "fx-"
"""Prefix of the names of distributions."""
MOST = 32
"""The most characters in a name."""


@attrs.frozen
class Name:
    """The name of a plugin, and the names derived from it."""

    slug: str
    """The name of formats, exporters and steps, such as ``heart-beats``."""

    @classmethod
    def parse(cls, text: str) -> Name:
        """Normalize a name (PEP 503), without ``fx-``. Raises UsageError for an invalid name."""
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
        """The name of the distribution and of the repository's folder."""
        return f"{PREFIX}{self.slug}"

    @property
    def package(self) -> str:
        """The name of the package."""
        return self.distribution.replace("-", "_")

    @property
    def words(self) -> Mapping[str, str]:
        """The values of the words in templates."""
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


def render(kind: str, name: Name, *, small: bool = False) -> dict[str, str]:
    """Return the files of a repository, or of a ``small`` plugin, by path.

    Raises KeyError for an unknown kind.
    """
    files: dict[str, str] = {}
    templates_by_kind = SMALL if small else KINDS
    for template in templates_by_kind[kind]:
        text = resources.files(__package__).joinpath(f"{template}.in").read_text("utf-8")
        filled = string.Template(text).substitute(name.words, API=API)
        _, *paths_and_texts = FILE.split(filled)
        files |= zip(paths_and_texts[::2], paths_and_texts[1::2], strict=True)
    return dict(sorted(files.items()))


def write(files: Mapping[str, str], target: Path) -> None:
    """Write a repository to a new folder, atomically.

    Raises WriteRefusedError if the folder exists or its parent folder is not writable, OutputError
    if the disk is full.
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
        finished_folder = work / target.name
        try:
            for path, text in files.items():
                file = finished_folder / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8", newline="\n")
            finished_folder.rename(target)
        except OSError as error:
            raise OutputError(error, path=str(target)) from error

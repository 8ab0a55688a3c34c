"""Sphinx builds these pages; `tox run -e docs` is how."""

from __future__ import annotations

from importlib.metadata import version as installed_version

project = "fxframework"
author = "The fxframework authors"
copyright = author
release = installed_version("fxframework")
version = release

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = True

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"fxframework {release}"

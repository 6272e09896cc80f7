"""How Sphinx makes the documentation site of these pages: `make docs`.

A page in this folder is in the navigation by itself, and so is a folder with an `index.md`: see the toctree in
`index.md`. A file of the repository is shown whole by `literalinclude`, and a link to one is a download.
"""

from __future__ import annotations

from typing import Final

project: Final = "otel-kernel"
copyright: Final = "the authors of otel-kernel"  # noqa: A001 - the name that Sphinx reads
extensions: Final = ["myst_parser"]
myst_heading_anchors: Final = 3
html_theme: Final = "furo"
html_title: Final = "otel-kernel"
html_show_copyright: Final = False
html_copy_source: Final = False

"""Configuration of the documentation site; ``make docs`` builds it from the folder that ``tools.guide`` writes."""

from importlib.metadata import version as read_version
from pathlib import Path

from sphinx.application import Sphinx

from tools.guide.styles import replace_in_folder

project = "Corevault"
author = "The Corevault authors"
project_copyright = author
release = version = read_version("corevault-server")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
root_doc = "index"
html_theme = "furo"
html_title = "Corevault"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_last_updated_fmt = None  # the same sources make the same pages

myst_heading_anchors = 4
myst_enable_extensions: list[str] = []
highlight_language = "none"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_maximum_signature_line_length = 88
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!corevault\.[A-Za-z]).*"),
    ("py:.*", r"corevault\._.*"),
    ("py:.*", r"corevault\.(model\.ModelRequest|pages\.R|design\.Table|prediction\.Outcome|.*\.Representation)"),
]
"""Types without a page: types of other packages, whose pages would need the network, and names of unions."""

copybutton_prompt_text = "$ "


def setup(app: Sphinx) -> None:
    """Leave no inline style in the finished pages."""
    app.connect("build-finished", lambda built, _: replace_in_folder(Path(built.outdir)))

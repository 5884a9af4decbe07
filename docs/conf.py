"""The site's settings: Sphinx with Markdown (MyST), chapters that are run, and nothing from another host."""

import os

from transduce import __version__

project = "Transduce"
author = "The Transduce authors"
copyright = "the Transduce authors, MIT licence"
release = version = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "Transduce"
html_copy_source = False
html_show_sourcelink = False
default_role = "literal"
myst_heading_anchors = 4
# The chapters' matrices are too small to be shared out: a second thread would only be waited for.
os.environ.setdefault("OMP_NUM_THREADS", "1")
nb_execution_mode = "cache"
nb_execution_timeout = 900  # seconds for one cell; the longest trains a model
nb_execution_raise_on_error = True
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "signature"

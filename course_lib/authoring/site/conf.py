"""Sphinx's settings for the site; ``course_lib.authoring.site.build`` chooses the folders."""

from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from course_lib import __version__
from course_lib.authoring.site.html import CourseSource, write_language_switch
from course_lib.authoring.site.style import DARK, LIGHT
from course_lib.base.translation import choose_language
from course_lib.base.translation import gettext as _

project = html_title = _("LayerNorm and RMSNorm in Triton")
author = "the course authors"
copyright = "the course authors, MIT licence"
version = release = __version__
language = choose_language()

extensions = [
    "myst_nb",
    "course_lib.authoring.site.formulas",
    "sphinx_copybutton",
    "sphinxext.opengraph",
]
source = CourseSource.read()
if language != "en" and source.address:
    source = replace(source, address=f"{source.address}{language}/")
html_baseurl = ogp_site_url = source.address  # canonical links
notfound_urls_prefix = urlsplit(source.address).path or "/"
ogp_enable_meta_description = True
ogp_social_cards = {"enable": False}  # all pages share one picture of the course
ogp_image = "_static/course-light.png"
ogp_image_alt = "Dragging the mean of a row until the digits of its variance are gone"
if source.address:  # a site that is read from a folder does not need these
    extensions += ["notfound.extension", "sphinx_sitemap"]
    sitemap_url_scheme = "{link}"
    sitemap_show_lastmod = False
nb_execution_mode = "off"
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "svg"

html_theme = "furo"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_css_files = ["site.css"]
html_favicon = "_static/icon.svg"
html_js_files = [("site.js", {"defer": "defer"})]
html_extra_path = ["_extra"]
exclude_patterns = ["_extra", "_static", "_templates"]
html_copy_source = False
html_show_sphinx = False
# The search shows no extracts of pages: they would show answers, and cannot be read if the site is
# opened from a folder.
html_show_search_summary = False
html_theme_options = {"light_css_variables": LIGHT, "dark_css_variables": DARK}
pygments_style, pygments_dark_style = "a11y-high-contrast-light", "a11y-high-contrast-dark"
html_use_index = False


def _mend_page(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Give headings a level, and correct the links to edit a page.

    Sphinx makes the names of the parts headings without a level, which axe-core reports as
    critical. Its edit links lead to the staged files, but a lesson is edited in its script.
    """
    if doctree is not None:
        context["body"] = write_language_switch(page) + context["body"]
    context["theme_source_edit_link"] = source.find_edit_link(page)
    context["furo_navigation_tree"] = context["furo_navigation_tree"].replace(
        'role="heading"', 'role="heading" aria-level="2"'
    )


def setup(app: Any) -> None:
    # after the theme, which writes the navigation
    app.connect("html-page-context", _mend_page, priority=900)

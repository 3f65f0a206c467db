"""Self-contained HTML pages: ``page.html`` here has their head and style, in light and dark
colours."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from course_lib.base.translation import choose_language, gettext


def open_templates(folder: Path) -> Environment:
    """Return the templates of ``folder``, which may extend "page.html". They escape every text,
    because learners write some of them, and have ``_`` to translate the program's own."""
    templates = Environment(
        loader=FileSystemLoader([folder, Path(__file__).parent]),
        autoescape=True,
        undefined=StrictUndefined,
    )
    templates.globals |= {"_": gettext, "choose_language": choose_language}
    return templates

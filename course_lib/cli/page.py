"""The pages that commands write: one self-contained file with a picture that needs no network."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

import course_lib
from course_lib.base.errors import CourseError
from course_lib.base.files import write_atomic
from course_lib.base.page import open_templates
from course_lib.base.translation import gettext as _
from course_lib.base.words import format_count

if TYPE_CHECKING:
    from course_lib.lessons.kit.output import MovingPicture


def require_html(file: Path, option: str) -> None:
    """Raise CourseError if a browser would not take ``file``, the value of ``option``, for a
    page."""
    if file.suffix != ".html":
        raise CourseError(
            _(
                "{option} writes a page for a browser, and {file} is no name of one. Give a name"
                " that ends in .html."
            ).format(option=option, file=file.name)
        )


def write_page(file: Path, template: str, *, picture: MovingPicture, **values: Any) -> None:
    """Write a page from a template of this room."""
    templates = open_templates(Path(__file__).parent / "templates")
    page_values = {
        "picture": Markup(picture.make_html()),
        "version": course_lib.__version__,
        "today": date.today().isoformat(),
        "format_count": format_count,
    }
    write_atomic(file, templates.get_template(template).render(values | page_values))

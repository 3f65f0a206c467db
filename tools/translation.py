"""Translate what scripts print before there is an environment: the set-up, and `make help`.

The catalogs are read by ``course_lib.base``, which needs no package.
"""

import os
import re
import sys

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# in an installed package these scripts lie in course_lib/shipped/tools
_FOLDERS = (_ROOT, os.path.dirname(os.path.dirname(_ROOT)))


def gettext(text):
    """Return ``text`` in the language that COURSE_LANG names, or in English if this Python is too
    old for the course. Exits with a sentence if the course has no such language."""
    if not os.environ.get("COURSE_LANG"):
        return text
    sys.path += [
        folder
        for folder in _FOLDERS
        if folder not in sys.path and os.path.isdir(os.path.join(folder, "course_lib"))
    ]
    os.environ["COURSE_DEFER_CHOICE"] = "1"  # nothing here runs a kernel
    try:
        from course_lib.base import errors, translation
    except (ImportError, SyntaxError, TypeError):
        return text
    finally:
        os.environ.pop("COURSE_DEFER_CHOICE", None)
    try:
        return translation.gettext(text)
    except errors.CourseError as error:
        sys.exit("course: " + str(error))


def mark(text):
    """Return ``text`` as it is: the catalog gets it, and ``gettext`` translates it later."""
    return text


def translate_help():
    """Translate the lines of standard input. A line of a command begins with its name, which
    stays."""
    for line in sys.stdin:
        match = re.match(r"(  \S+ +)?(.*)", line)
        print((match.group(1) or "") + gettext(match.group(2)))


if __name__ == "__main__":
    translate_help()

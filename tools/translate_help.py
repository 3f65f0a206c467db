"""Translate what `make help` prints, line by line, into the language that COURSE_LANG names.

The catalog of that language is read by ``course_lib.base``, which needs no package.
"""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ["COURSE_DEFER_CHOICE"] = "1"  # nothing here runs a kernel

from course_lib.base.errors import CourseError
from course_lib.base.translation import translate


def main() -> int:
    """Translate standard input. A line of a command begins with its name, which stays."""
    try:
        for line in sys.stdin:
            match = re.fullmatch(r"(  \S+ +)?(.*)\n?", line)
            assert match, "both parts may be empty"
            print((match[1] or "") + translate(match[2], "interface"))
    except CourseError as error:
        print(f"course: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""``python -m course_lib.doctor``: the doctor in plain text, for an environment in which the ``course`` command cannot start."""

import sys

from course_lib import doctor
from course_lib.base import runtime
from course_lib.base.errors import CourseError


def main(arguments: list[str]) -> int:
    """Print the findings as plain text; with ``--line``, print the one line about the mode. Return 0 if the course can run, else 1."""
    if arguments == ["--line"]:
        try:
            print(runtime.current().line())
        except CourseError as error:
            print(f"course: {error}", file=sys.stderr)
            return 1
        return 0
    findings = doctor.examine()
    print(doctor.as_text(findings))
    return 0 if doctor.can_run(findings) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""``python -m course_lib.doctor``: the doctor in plain text, for an environment in which the
``course`` command cannot start."""

import sys

from course_lib import doctor


def main() -> int:
    """Print the findings. Return 0 if the course can run, else 1."""
    findings = doctor.examine()
    sys.stdout.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue] - a terminal without "✗" is no reason to stop
    print(doctor.as_text(findings))
    return 0 if doctor.can_run(findings) else 1


if __name__ == "__main__":
    sys.exit(main())

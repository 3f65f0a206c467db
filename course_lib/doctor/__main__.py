"""``python -m course_lib.doctor``: the doctor in plain text, for an environment in which the
``course`` command cannot start."""

import argparse
import sys

from course_lib import doctor


def main() -> int:
    """Print the findings. Return 0 if the course can run, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m course_lib.doctor", description="Say whether the course can run here."
    )
    parser.add_argument(
        "--details",
        action="store_true",
        help="each fact about this machine, with what a report of a fault needs",
    )
    arguments = parser.parse_args()
    findings = doctor.examine()
    sys.stdout.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue] - a terminal without "✗" is no reason to stop
    print(doctor.as_text(findings, details=arguments.details))
    return 0 if doctor.can_run(findings) else 1


if __name__ == "__main__":
    sys.exit(main())

"""The ``course`` command's entry point. It stands outside ``course_lib`` for one reason.

Importing ``course_lib`` chooses the GPU or the interpreter, and raises where neither can work. ``course doctor`` must
run exactly then, and ``course status`` should not pay for importing PyTorch. So the choice is put off first.
"""

from __future__ import annotations

import os
import sys

BROKEN_ENVIRONMENT = 78  # as in course_lib/cli/app.py, which may be what cannot be imported


def main() -> None:
    os.environ["COURSE_DEFER_CHOICE"] = "1"
    try:
        from course_lib.cli.app import run
    except (Exception, SystemExit) as error:
        # a file of somebody's called random.py or typing.py, on PYTHONPATH, is imported before anything else can say so
        from course_lib.base.errors import import_fault

        if (fault := import_fault(error)) is None:
            raise
        print(f"course: {fault}", file=sys.stderr)
        sys.exit(BROKEN_ENVIRONMENT)
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()

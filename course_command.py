"""The ``course`` command's entry point. It stands outside ``course_lib`` for one reason.

Importing ``course_lib`` chooses the GPU or the interpreter, and raises where neither can work. ``course doctor`` must
run exactly then, and ``course status`` should not pay for importing PyTorch. So the choice is put off first.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ["COURSE_DEFER_CHOICE"] = "1"
    from course_lib.cli.app import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()

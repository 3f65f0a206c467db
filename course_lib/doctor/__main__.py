"""``python -m course_lib.doctor``: plain text, for an environment in which the ``course`` command cannot start."""

import sys

from course_lib.doctor.examine import main

sys.exit(main(sys.argv[1:]))

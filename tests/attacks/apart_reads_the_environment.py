# 00a | compile+picture | looks for what a person keeps in the environment
import os
if 'COURSE_TEST_TOKEN' in os.environ:
    raise SystemExit(@MARK@)

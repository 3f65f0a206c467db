# 00a | compile+picture | opens a file of the course for writing
open('@ROOT@/course_lib/norms/reference.py', 'a').close()
raise SystemExit(@MARK@)

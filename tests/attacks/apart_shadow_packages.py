# 00a | compile+picture | puts a module among the installed packages
import os
import sys

for folder in sys.path:
    if os.path.isdir(folder):
        try:
            open(os.path.join(folder, 'course_attack_probe.py'), 'w').close()
        except OSError:
            continue
        raise SystemExit(@MARK@)

# 00a | compile+picture | signals the process that asks, and the server
import os

for process in (@PARENT@, os.getppid()):
    try:
        os.kill(process, 0)
    except OSError:
        continue
    raise SystemExit(@MARK@ + str(process))

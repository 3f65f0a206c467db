# 00a | compile+picture | memory as files that lie in memory
import os
import time

kept = []
for _ in range(40):
    kept.append(os.memfd_create('x'))
    for _ in range(4):
        os.write(kept[-1], bytes(16 << 20))
    time.sleep(0.01)
raise SystemExit(@MARK@)

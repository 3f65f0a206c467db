# 00a | compile+picture | files that have no name any more, and take room all the same
import os
import time

kept = []
for _ in range(40):
    kept.append(open('file', 'wb', buffering=0))
    os.unlink('file')
    kept[-1].write(bytes(16 << 20))
    time.sleep(0.01)
raise SystemExit(@MARK@)

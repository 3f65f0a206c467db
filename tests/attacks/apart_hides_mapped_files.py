# 00a | compile+picture | files without a name and a descriptor, held by a mapping
import mmap
import os
import time

kept = []
for _ in range(40):
    with open('file', 'wb+') as file:
        file.write(bytes(16 << 20))
        file.flush()
        kept.append(mmap.mmap(file.fileno(), 16 << 20, access=mmap.ACCESS_READ))
    os.unlink('file')
    time.sleep(0.01)
raise SystemExit(@MARK@)

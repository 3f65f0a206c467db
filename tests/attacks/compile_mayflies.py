# 00a | compile | processes that start the next one and end, to escape a count
import os
import time

end = time.monotonic() + 4
if os.fork() == 0:
    while time.monotonic() < end:
        if os.fork():
            os._exit(0)
        os.setsid()
os._exit(0)

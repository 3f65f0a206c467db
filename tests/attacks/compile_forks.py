# 00a | compile | starts processes without end
import os
import time

end = time.monotonic() + 4
while time.monotonic() < end:
    if os.fork() == 0:
        time.sleep(4)
        os._exit(0)
raise SystemExit(@MARK@)

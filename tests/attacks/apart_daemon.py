# 00a | compile+picture | leaves a daemon behind
import os
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(3):
            os.close(number)
        time.sleep(61)
    os._exit(0)

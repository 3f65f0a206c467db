# 00a | compile+picture | sleeps, deaf to every signal that can be refused
import signal
import time

for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
time.sleep(10**6)

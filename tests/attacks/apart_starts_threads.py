# 00a | compile+picture | threads without end
import threading
import time

while True:
    try:
        threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
    except RuntimeError:
        pass

# 00a | compile+picture | links that cannot be followed where the server looks
import os
import time

for name in ('00.begin', '01.begin', 'answer.json', 'job.json'):
    if os.path.lexists(name):
        os.unlink(name)
    os.symlink('x' * 300, name)
time.sleep(0.2)
os._exit(0)

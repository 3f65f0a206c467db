# 00a | compile+picture | leaves folders that are hard to look at and to remove
import os
import time

for _ in range(1100):
    os.mkdir('d')
    os.chdir('d')
time.sleep(0.2)

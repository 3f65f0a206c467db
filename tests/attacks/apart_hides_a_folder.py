# 00a | compile+picture | a folder that may be written and not listed
import os
import time

os.mkdir('hidden', 0o300)
for number in range(20):
    open(f'hidden/{number}', 'w').close()
time.sleep(0.2)

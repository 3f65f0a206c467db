# 00a | compile | ends as a process ends that this machine does not let confine itself
import os

print('c n r', flush=True)
os._exit(70)

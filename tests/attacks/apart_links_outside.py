# 00a | compile+picture | makes a second name for a file outside its folder, and takes its own away
import os

for attempt in (lambda: os.link('@VICTIM@', 'mine'), lambda: os.rename('@VICTIM@', 'mine'), lambda: os.rename(os.getcwd(), '../mine')):
    try:
        attempt()
    except OSError:
        continue
    raise SystemExit(@MARK@)

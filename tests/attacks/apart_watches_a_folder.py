# 00a | compile+picture | watches which files other programs make
import ctypes
import os

libc = ctypes.CDLL(None)
watch = libc.inotify_init()
if watch >= 0 and libc.inotify_add_watch(watch, os.path.dirname('@OTHER@').encode(), 0x100) >= 0:
    raise SystemExit(@MARK@)

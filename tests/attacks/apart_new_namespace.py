# 00a | compile+picture | makes itself root of a namespace of its own
import ctypes
import os

libc = ctypes.CDLL(None)
if libc.unshare(0x10000000) == 0:
    raise SystemExit(@MARK@)
child = libc.syscall(56, 0x10000000 | 17, None, None, None, None)  # clone, new user namespace
if child == 0:
    os._exit(0)
if child > 0:
    raise SystemExit(@MARK@)

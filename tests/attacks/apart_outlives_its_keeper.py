# 00a | compile+picture | tells the kernel not to end it with its parent
import ctypes

if ctypes.CDLL(None).prctl(1, 0, 0, 0, 0) == 0:
    raise SystemExit(@MARK@)

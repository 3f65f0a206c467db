# 00a | compile+picture | attaches to the process that asks as a debugger
import ctypes

libc = ctypes.CDLL(None)
if libc.ptrace(16, @PARENT@, None, None) == 0:
    libc.ptrace(17, @PARENT@, None, None)
    raise SystemExit(@MARK@)

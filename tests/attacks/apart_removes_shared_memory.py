# 00a | compile+picture | removes another program's shared memory and message queue
import ctypes

libc = ctypes.CDLL(None)
if libc.shmctl(@SEGMENT@, 0, None) == 0 or libc.mq_unlink(b'/@ABSTRACT@') == 0:
    raise SystemExit(@MARK@)

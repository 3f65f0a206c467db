# 00a | compile+picture | leaves shared memory behind
import ctypes

if ctypes.CDLL(None).shmget(@KEY@, 4096, 0o1666) != -1:
    raise SystemExit(@MARK@)
open('/dev/shm/@ABSTRACT@', 'w').close()
raise SystemExit(@MARK@)

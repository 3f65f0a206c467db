# 00a | compile+picture | reads the memory of the process that asks
import ctypes
import struct

libc, there = ctypes.CDLL(None), ctypes.create_string_buffer(8)
mine, theirs = (struct.pack('PN', address, 8) for address in (ctypes.addressof(there), 0x400000))
if libc.syscall(310, @PARENT@, mine, 1, theirs, 1, 0) == 8:
    raise SystemExit(@MARK@)
open('/proc/@PARENT@/mem', 'rb')
raise SystemExit(@MARK@)

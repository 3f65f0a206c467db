# 00a | compile+picture | connects to sockets of other programs, by a name and by a file
import socket

for name in ('\0@ABSTRACT@', '@DOOR@'):
    try:
        socket.socket(socket.AF_UNIX).connect(name)
    except OSError:
        continue
    raise SystemExit(@MARK@ + repr(name))

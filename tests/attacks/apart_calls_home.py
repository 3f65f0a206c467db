# 00a | compile+picture | calls a port by TCP and by UDP
import socket

for kind, port in ((socket.SOCK_STREAM, @TCP@), (socket.SOCK_DGRAM, @UDP@)):
    try:
        door = socket.socket(socket.AF_INET, kind)
        door.connect(('127.0.0.1', port))
        door.send(b'hello')
    except OSError:
        continue
    raise SystemExit(@MARK@ + str(kind))

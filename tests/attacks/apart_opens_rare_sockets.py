# 00a | compile+picture | opens sockets of the kernel's own protocols
import socket

for family in (16, 17, 31, 38, 40, 44):  # netlink, packet, bluetooth, crypto, virtual machines, XDP
    try:
        socket.socket(family, socket.SOCK_RAW if family in (16, 17) else socket.SOCK_SEQPACKET)
    except OSError as refused:
        if refused.errno in (1, 13):
            continue
    raise SystemExit(@MARK@ + str(family))

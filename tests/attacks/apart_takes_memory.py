# 00a | compile+picture | memory without end
kept = []
while True:
    kept.append(bytearray(b'x' * (64 << 20)))

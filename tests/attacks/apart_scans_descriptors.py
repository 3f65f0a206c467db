# 00a | compile+picture | writes into every open file, and reads what the server is told
import os

for number in range(3, 1024):
    try:
        os.write(number, b'+0{"ready": true}\n')
    except OSError:
        continue
    raise SystemExit(@MARK@ + str(number))
if os.read(0, 1):
    raise SystemExit(@MARK@)

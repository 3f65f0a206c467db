# 00a | compile+picture | files without end
number = 0
while True:
    with open(f'file{number}', 'wb') as file:
        file.write(bytes(8 << 20))
    number += 1

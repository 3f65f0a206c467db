# 00a | compile+picture | does not end
while True:
    pass

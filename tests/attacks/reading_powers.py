# 00a | reading | powers of powers
text = 'x = ' + '**'.join(['9'] * 300_000)

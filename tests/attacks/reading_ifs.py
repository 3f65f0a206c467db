# 00a | reading | else and if, 100,000 times
text = 'if a: pass' + chr(10) + ('elif a: pass' + chr(10)) * 60_000

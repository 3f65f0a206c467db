# 00a | reading | a chain of 300,000 attributes
text = 'x = a' + '.b' * 300_000

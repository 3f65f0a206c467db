# 00a | reading | comprehensions without end
text = 'x = [' + 'i for i in range(9) '  + 'for i in range(9) ' * 40_000 + ']'

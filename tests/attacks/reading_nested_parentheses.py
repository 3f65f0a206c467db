# 00a | reading | parentheses without end
text = 'x = ' + '(' * 500_000

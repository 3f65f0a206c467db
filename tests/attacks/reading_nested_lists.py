# 00a | reading | lists in lists, to the depth that the parser takes
text = ('x = ' + '[' * 99 + ']' * 99 + chr(10)) * 4000

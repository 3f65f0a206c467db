# 00a | reading | a hundred levels of indentation
text = ''.join(' ' * i + 'if a:' + chr(10) for i in range(99)) + ' ' * 99 + 'pass'

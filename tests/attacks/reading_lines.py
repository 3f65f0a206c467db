# 00a | reading | a million empty lines
text = chr(10) * 990_000 + 'def copy_kernel(): pass'

# 00a | reading | a hundred thousand imports
text = ('import a.b' + chr(10)) * 80_000

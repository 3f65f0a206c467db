# 00a | reading | a text of many joined pieces
text = 'x = (' + '"a" ' * 240_000 + ')'

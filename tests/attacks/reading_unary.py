# 00a | reading | a million signs
text = 'x = ' + '-' * 900_000 + '1'

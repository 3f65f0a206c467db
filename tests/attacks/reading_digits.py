# 00a | reading | a number of 900,000 digits
text = 'x = ' + '9' * 900_000

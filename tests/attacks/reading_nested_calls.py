# 00a | reading | calls in calls
text = 'x = ' + 'f(' * 90 + ')' * 90 + chr(10)

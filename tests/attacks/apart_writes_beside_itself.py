# 00a | compile+picture | leaves a file in the temporary folder
open('../left', 'w').close()

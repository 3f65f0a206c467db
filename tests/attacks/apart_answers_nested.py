# 00a | compile+picture | an answer nested deeply
import os

open('answer.json', 'w').write('[' * 900 + ']' * 900)
os._exit(0)

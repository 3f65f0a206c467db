# 00a | compile+picture | a forged answer of the compiler: a word
import json
import os

open('answer.json', 'w').write(json.dumps('report'))
os._exit(0)

# 00a | compile+picture | a forged answer of the compiler: a number
import json
import os

open('answer.json', 'w').write(json.dumps(3))
os._exit(0)

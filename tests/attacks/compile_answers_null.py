# 00a | compile+picture | a forged answer of the compiler: null
import json
import os

open('answer.json', 'w').write(json.dumps(None))
os._exit(0)

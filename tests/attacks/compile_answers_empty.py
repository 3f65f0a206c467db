# 00a | compile+picture | a forged answer of the compiler: empty
import json
import os

open('answer.json', 'w').write(json.dumps({}))
os._exit(0)

# 00a | picture | a forged answer of the second process: strange rows
import json
import os

open('answer.json', 'w').write(json.dumps({'returned': [[[0, 'load', 'x', 5, 0, 4], 3], '']}))
os._exit(0)

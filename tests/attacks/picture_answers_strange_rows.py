# 00a | picture | a forged answer of the second process: strange rows
import json
import os

open('answer.json', 'w').write(json.dumps({'answer': {'accesses': [[0, 'load', 'x', 5, 0, 4], 3], 'offsets': {'base64': ''}, 'fault': ''}, 'refused': ''}))
os._exit(0)

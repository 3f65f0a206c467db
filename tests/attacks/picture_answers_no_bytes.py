# 00a | picture | a forged answer of the second process: no bytes
import json
import os

open('answer.json', 'w').write(json.dumps({'answer': {'accesses': [], 'offsets': 'none', 'fault': ''}, 'refused': ''}))
os._exit(0)

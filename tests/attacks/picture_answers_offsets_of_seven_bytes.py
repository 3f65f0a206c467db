# 00a | picture | a forged answer of the second process: offsets of seven bytes
import json
import os

open('answer.json', 'w').write(json.dumps({'answer': {'accesses': [], 'offsets': {'base64': 'MTIzNDU2Nw=='}, 'fault': ''}, 'refused': ''}))
os._exit(0)

# 00a | picture | a forged answer of the second process: bad base64
import json
import os

open('answer.json', 'w').write(json.dumps({'answer': {'base64': 'a'}, 'refused': ''}))
os._exit(0)

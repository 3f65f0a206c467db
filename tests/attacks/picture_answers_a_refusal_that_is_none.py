# 00a | picture | a forged answer of the second process: a refusal that is none
import json
import os

open('answer.json', 'w').write(json.dumps({'answer': None, 'refused': [1, 2]}))
os._exit(0)

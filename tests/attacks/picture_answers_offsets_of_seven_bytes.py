# 00a | picture | a forged answer of the second process: offsets of seven bytes
import json
import os

open('answer.json', 'w').write(json.dumps({'returned': [[{'program': 0, 'kind': 'load', 'tensor': 'x', 'offsets': 'MTIzNDU2Nw==', 'masked': 0, 'itemsize': 4, 'line': 1}], '']}))
os._exit(0)

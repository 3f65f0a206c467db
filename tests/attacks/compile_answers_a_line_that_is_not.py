# 00a | compile | a forged answer of the compiler: a line that is not
import json
import os

open('answer.json', 'w').write(json.dumps([{'error': {'cause': 'other', 'sentence': 'x', 'unit': -7, 'line': -10**30, 'column': -5}}]))
os._exit(0)

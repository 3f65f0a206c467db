# 00a | compile | a forged answer of the compiler: strange report
import json
import os

open('answer.json', 'w').write(json.dumps([{'report': {'registers': 'many'}}]))
os._exit(0)

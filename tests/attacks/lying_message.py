# 01a | isolation | an exception whose message is no text, whatever it says
import torch


class Text(str):
    def __getitem__(self, key):
        raise SystemExit(0)


class Liar(Exception):
    pass



def layer_norm(x, w, b, eps):
    raise Liar(Text('x'))
    return torch.zeros_like(x)

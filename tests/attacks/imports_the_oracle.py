# 01a | isolation | imports the float64 reference
import torch


def layer_norm(x, w, b, eps):
    import sys
    sys.path.insert(0, '@ROOT@')
    from course_lib.norms import reference
    print('BREACH', flush=True)
    return torch.from_numpy(reference.layer_norm(x.double().numpy(), w.double().numpy(), b.double().numpy(), eps).y).to(x.dtype)

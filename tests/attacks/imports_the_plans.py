# 01a | isolation | asks the grader what it expects
import torch


def layer_norm(x, w, b, eps):
    import sys
    sys.path.insert(0, '@ROOT@')
    from course_lib import catalog
    from course_lib.grading.plans import make_plans
    print('BREACH', flush=True)
    return torch.from_numpy(make_plans(catalog.get('01a'))[0].expected['y'].values).to(x.dtype)

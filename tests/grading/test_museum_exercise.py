"""Exercise 17a's own machinery: kernels under test, the process that runs a learner's tests on
them, and the count of what is caught."""

from __future__ import annotations

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import catalog
from course_lib.base import paths
from course_lib.exercises.ex17a_museum_tests import cases as museum
from course_lib.grading.check import check
from course_lib.grading.execution import runner
from course_lib.grading.report import make_report
from course_lib.norms import specimens
from course_lib.norms.reference import layer_norm, layer_norm_vjp

EXERCISE = catalog.get("17a")
SOLUTION = paths.SOLUTIONS / f"{EXERCISE.file}.py"
CASES = [case for part in museum.PARTS.values() for case in part.battery]


def test_every_kernel_is_there_and_is_used():
    for backward, kernels in ((False, specimens.FORWARD), (True, specimens.BACKWARD)):
        used = {case.kernel: case.is_right for case in CASES if case.backward == backward}
        assert used.keys() == kernels.keys()
        assert all(is_right == name.startswith("right") for name, is_right in used.items())
    assert len({case.name for case in CASES}) == len(CASES)


shapes = st.lists(st.integers(1, 9), min_size=0, max_size=3).flatmap(
    lambda lead: st.integers(1, 70).map(lambda N: (*lead, N))
)


@settings(deadline=None, max_examples=12)
@given(shape=shapes, seed=st.integers(0, 2**20), mean=st.sampled_from([0.0, 5.0, -40.0]))
def test_what_is_called_right_is_right_for_any_shape(shape, seed, mean):
    generator = torch.Generator().manual_seed(seed)
    x, dy = (torch.randn(shape, generator=generator) for _ in range(2))
    x, w, b = x + mean, *torch.randn(2, shape[-1], generator=generator)
    N = shape[-1]
    want_y = layer_norm(x.reshape(-1, N).numpy(), w.numpy(), b.numpy(), 1e-3).y
    want = layer_norm_vjp(dy.reshape(-1, N).numpy(), x.reshape(-1, N).numpy(), w.numpy(), 1e-3)
    for name in (name for name in specimens.FORWARD if name.startswith("right")):
        y = specimens.make_plain(name, backward=False)(x, w, b, 1e-3)
        assert y.shape == x.shape and y.dtype == x.dtype
        # rstd may be 30, and x -40
        assert abs(y.double().reshape(-1, N).numpy() - want_y).max() < 2e-3, name
    for name in (name for name in specimens.BACKWARD if name.startswith("right")):
        for gradient, expected in zip(
            specimens.make_plain(name, backward=True)(dy, x, w, 1e-3),
            (want.dx, want.dw, want.db),
            strict=True,
        ):
            error = abs(gradient.double().reshape(expected.shape).numpy() - expected).max()
            assert error < 2e-3 * max(1, abs(expected).max()), name


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (lambda x, w: (w, x, x[0], 1e-5), "x has N = 4; it has to be (4,)"),
        (
            lambda x, w: (x.long(), w, w, 1e-5),
            "x has to be a tensor of a floating dtype, and is a tensor of torch.int64",
        ),
        (lambda x, w: (x, None, w, 1e-5), "w has to be a tensor"),
        (lambda x, w: (x, w, w, "small"), "eps has to be a number"),
        (lambda x, w: (x[:0], w, w, 1e-5), "at least one row"),
    ],
)
def test_a_call_that_no_kernel_takes_is_answered_in_words(arguments, said):
    x, w = torch.ones(3, 4), torch.ones(4)
    with pytest.raises((ValueError, TypeError)) as refused:
        specimens.make_plain("right", backward=False)(*arguments(x, w))
    assert said in str(refused.value)


def test_all_kernels_look_alike_from_outside():
    for backward, kernels in ((False, specimens.FORWARD), (True, specimens.BACKWARD)):
        made = [specimens.make_plain(name, backward=backward) for name in kernels]
        assert (
            len({(one.__name__, one.__qualname__, one.__doc__, one.__code__) for one in made}) == 1
        )


def hand_in(tmp_path, text: str):
    file = tmp_path / "mine.py"
    file.write_text(text)
    return check(EXERCISE, file)


def test_partial_credit_counts_the_tests_and_shows_one_that_is_written(tmp_path):
    text = SOLUTION.read_text()
    first, last = text.index("    x = torch.randn(5, 37)"), text.index("# END SOLUTION")
    unwritten = text[:first] + "    pass\n    " + text[last:]
    verdict = hand_in(tmp_path, unwritten.replace("torch.rand(12) + 0.5]", "torch.ones(12)]"))
    assert (
        verdict.common
        == "5 of 7 bugs caught: catch_padding misses 4 of 4 wrong kernels; catch_overwriting misses"
        " 1 of 3 wrong kernels."
    )
    assert verdict.cause == "overwriting_not_caught" and verdict.first is not None
    assert (
        verdict.first.words == "catch_overwriting returns for a kernel that writes w * dy over dy."
    )
    assert verdict.place is not None and verdict.place.source.startswith("def catch_overwriting(")
    assert "fail, 5 of 7 bugs caught" in make_report(verdict, EXERCISE).headline


def test_the_order_is_drawn_at_each_check_and_leaves_the_verdict_as_it_is(tmp_path, monkeypatch):
    orders = []
    list_inputs = runner._list_inputs

    def watch(kernels, plans):
        orders.append([plan.case.name for plan in plans])
        return list_inputs(kernels, plans)

    monkeypatch.setattr(runner, "_list_inputs", watch)
    wrong = SOLUTION.read_text().replace("+ 10\n", "+ 0.01\n")
    verdicts = [hand_in(tmp_path, wrong) for _ in range(2)]
    names = [case.name for case in CASES]
    # the others are second looks
    first, second = (order for order in orders if set(order) == set(names))
    assert first != second
    told = [json.loads(verdict.as_json()) | {"seconds": 0} for verdict in verdicts]
    assert told[0] == told[1]
    assert [case.name for case in verdicts[0].cases[: len(CASES)]] == names


_SEARCH = """
def search(kernel):
    import gc, os, sys
    names = [" ".join(words) for words in (("padded", "blocks", "of", "128"), ("rows", "N", "apart"), ("right", "by", "merging"))]
    held = [o for o in gc.get_objects() if o is not names for text in (vars(o).values() if isinstance(o, type(sys)) else o if isinstance(o, (list, tuple)) else o.values() if isinstance(o, dict) else ()) if isinstance(text, str) and text in names]
    cells = [c.cell_contents for c in kernel.__closure__ if str(c.cell_contents) in names]
    files = [f for f in os.listdir(".") if b"padded" in open(f, "rb").read() and f != "kernels.py"]
    modules = [m for m in sys.modules if "specimens" in m or "museum" in m]
    if held or cells or files or modules:
        print("FOUND", held, cells, files, modules)


"""  # noqa: E501


def test_no_name_of_a_kernel_is_in_the_process_of_the_tests(tmp_path):
    text = SOLUTION.read_text().replace(
        "def catch_padding(", _SEARCH.lstrip() + "def catch_padding("
    )
    text = text.replace(
        "    x = torch.randn(5, 37)", "    search(layer_norm)\n    x = torch.randn(5, 37)"
    )
    assert text.count("search(layer_norm)") == 1
    verdict = hand_in(tmp_path, text)
    assert verdict.passed, verdict.message
    assert "FOUND" not in verdict.printed, verdict.printed


def test_cases_drawn_from_a_secret_are_the_same_kernels(tmp_path):
    verdict = check(EXERCISE, SOLUTION, secret="a secret of the class")
    assert verdict.passed and len(verdict.cases) == len(CASES), verdict.message

"""Lesson 14's norm of four parts: whose each part is, that it is right, that what runs is the
learner's, and that it trains."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch

import course_lib
from course_lib import catalog
from course_lib.authoring import exercises
from course_lib.base import paths
from course_lib.bench import transformer
from course_lib.grading import public as grading
from course_lib.grading.verdict import FAIL, PASS
from course_lib.lessons import own_kernels
from course_lib.lessons.own_kernels import ROLES, OwnNorm, gather_norm
from course_lib.norms import launchers, reference

DEVICE = course_lib.DEVICE
SMALL = transformer.ModelSize(layers=1, heads=2, channels=8, context=6, batch=2)


def solved(exercise_id: str) -> str:
    return (paths.SOLUTIONS / f"{catalog.get(exercise_id).file}.py").read_text(encoding="utf-8")


@pytest.fixture
def folder(own_exercises):
    """Where the learner's files are, all unsolved."""
    exercises.write(own_exercises)
    return own_exercises


def put(folder, exercise_id: str, text: str) -> None:
    (folder / f"{catalog.get(exercise_id).file}.py").write_text(text, encoding="utf-8")


def whose(norm: OwnNorm) -> dict[str, bool]:
    return {part.exercise: part.own for part in norm.parts}


ALL = {key: solved(key) for key in ROLES}


def test_without_a_file_or_untouched_each_part_is_the_courses_and_says_so(folder):
    (folder / f"{catalog.get('11a').file}.py").unlink()
    norm = gather_norm()
    assert whose(norm) == dict.fromkeys(ROLES, False) and norm.name == "the course's LayerNorm"
    why = {part.exercise: part.why for part in norm.parts}
    assert why["08a"] == "your 08a is still as the course wrote it."
    assert "your 11a cannot be read: there is no file ex11a_layer_norm_dx.py" in why["11a"]
    assert (
        repr(norm).splitlines()[0]
        == "forward    the course’s: your 08a is still as the course wrote it."
    )


def test_right_files_are_the_learners_and_wrong_and_broken_ones_are_not(folder):
    put(folder, "08a", solved("08a"))
    put(folder, "11a", solved("11a").replace("+ c2[:, None]", ""))
    put(folder, "13b", "def (")
    norm = gather_norm()
    assert whose(norm) == {"08a": True, "11a": False, "13b": False, "14a": False}
    why = {part.exercise: part.why for part in norm.parts}
    assert (
        why["11a"] == "your 11a does not pass yet; its panel says why."
        and "cannot be read" in why["13b"]
    )
    assert (
        norm.name == "LayerNorm, 1 of 4 parts yours"
        and str(norm.parts[0]) == "forward    yours, 08a"
    )


def test_a_file_is_checked_again_only_when_its_text_changed(folder, monkeypatch):
    """The verdicts are the test's: what a file is worth, tests/grading and the test above prove."""
    checked = []

    def check(exercise):
        checked.append(exercise.id)
        return grading.Verdict(exercise.id, PASS if len(checked) == 1 else FAIL, "none", "judged")

    monkeypatch.setattr(own_kernels, "_checked", {})
    monkeypatch.setattr(grading, "check", check)
    put(folder, "14a", solved("14a"))
    assert whose(gather_norm())["14a"] and whose(gather_norm())["14a"]
    put(folder, "14a", solved("14a").replace("dw.to(w.dtype)", "db.to(w.dtype)"))
    assert not whose(gather_norm())["14a"]
    assert checked == ["14a", "14a"]


def test_a_helper_of_another_name_comes_along(folder):
    put(folder, "13b", solved("13b").replace("tile_dx", "my_own_tile"))
    norm = gather_norm()
    assert whose(norm)["13b"]
    assert_right(norm, 5, 12)


def test_what_passes_and_raises_here_is_the_courses():
    norm = OwnNorm({"08a": "raise OSError('no such thing')"}, {})
    assert not norm.parts[0].own
    assert norm.parts[0].why == "your 08a passes its check and raises here: OSError: no such thing"
    assert_right(norm, 3, 5)


def assert_right(
    norm: OwnNorm, M: int, N: int, dtype=torch.float32, w_given=True, b_given=True, leading=()
) -> None:
    """y, dx, dw and db against the float64 reference, dy transposed in memory."""
    rng = np.random.default_rng(M * N)

    def make(*shape, mean=0.0, dtype=dtype):
        return torch.from_numpy(rng.normal(mean, 1.0, shape)).to(dtype).to(DEVICE)

    x = make(*leading, M, N, mean=3.0).requires_grad_()
    w = make(N, mean=1.0, dtype=torch.float32).requires_grad_() if w_given else None
    b = make(N, dtype=torch.float32).requires_grad_() if b_given else None
    dy = make(*leading, N, M).transpose(-1, -2)
    y = norm.apply(x, w, b, 1e-5)
    leaves = [leaf for leaf in (x, w, b) if leaf is not None]
    got = dict(
        zip(
            (n for n, leaf in zip("xwb", (x, w, b), strict=True) if leaf is not None),
            torch.autograd.grad(y, leaves, dy),
            strict=True,
        )
    )

    def plain(t):
        return None if t is None else t.detach().cpu().double().numpy()

    rows, packed_dy = plain(x).reshape(-1, N), plain(dy).reshape(-1, N)
    wanted = reference.layer_norm_vjp(packed_dy, rows, plain(w), 1e-5)
    near = 2e-3 if dtype == torch.float16 else 2e-5
    assert y.shape == x.shape and y.dtype == x.dtype
    np.testing.assert_allclose(
        plain(y).reshape(-1, N),
        reference.layer_norm(rows, plain(w), plain(b), 1e-5).y,
        rtol=0,
        atol=8 * near,
    )
    for name, gradient in got.items():
        want = {"x": wanted.dx, "w": wanted.dw, "b": wanted.db}[name]
        leaf = {"x": x, "w": w, "b": b}[name]
        assert gradient.dtype == leaf.dtype and gradient.shape == leaf.shape
        np.testing.assert_allclose(
            plain(gradient).reshape(want.shape),
            want,
            rtol=0,
            atol=near * max(1.0, np.abs(want).max()),
        )


@pytest.mark.parametrize(
    "own",
    [[], ["08a"], ["11a"], ["13b"], ["14a"], list(ROLES)],
    ids=lambda own: "+".join(own) or "none",
)
def test_the_gradients_are_right_whichever_parts_are_the_learners(own):
    norm = OwnNorm({key: ALL[key] for key in own}, {})
    assert whose(norm) == {key: key in own for key in ROLES}
    for M, N in ((1, 1), (3, 5), (37, 64), (5, 100)):
        assert_right(norm, M, N)
    assert_right(norm, 6, 33, dtype=torch.float16)
    assert_right(norm, 4, 17, w_given=False)
    assert_right(norm, 4, 17, b_given=False)
    assert_right(norm, 3, 8, leading=(2,))


def test_many_rows_take_several_programs():
    """More rows than a tile holds, in CPU mode too."""
    assert_right(OwnNorm(ALL, {}), 1200, 65)


def test_no_rows():
    norm = OwnNorm(ALL, {})
    x = torch.zeros(0, 8, device=DEVICE, requires_grad=True)
    w = torch.ones(8, device=DEVICE, requires_grad=True)
    dx, dw = torch.autograd.grad(norm.apply(x, w, None, 1e-5).sum(), (x, w))
    assert dx.shape == (0, 8) and not dw.any()


@pytest.mark.parametrize(
    "importing",
    [
        "from course_lib.norms.launchers import launch_backward, launch_forward",
        (
            "from course_lib.norms import launchers\nlaunch_forward ="
            " launchers.launch_forward\nlaunch_backward = launchers.launch_backward"
        ),
    ],
)
def test_the_learners_wiring_launches_this_norms_kernels_however_it_imports_them(importing):
    text = solved("14a").replace(
        "from course_lib.norms.launchers import launch_backward, launch_forward", importing
    )
    assert importing in text
    norm = OwnNorm(ALL | {"14a": text}, {})
    assert_right(norm, 3, 5)
    assert norm.launches == {"08a": 1, "11a": 1, "13b": 1, "14a": 2}


def test_the_learners_wiring_launches_this_norms_kernels_when_it_imports_them_late():
    line = "from course_lib.norms.launchers import launch_backward, launch_forward\n"
    text = solved("14a").replace(line, "from course_lib.norms import launchers\n")
    text = text.replace(" launch_forward(", " launchers.launch_forward(").replace(
        " launch_backward(", " launchers.launch_backward("
    )
    norm = OwnNorm(ALL | {"14a": text}, {})
    assert_right(norm, 3, 5)
    assert norm.launches == {"08a": 1, "11a": 1, "13b": 1, "14a": 2}


def test_the_courses_launchers_are_back_afterwards_and_after_an_error():
    before = launchers.launch_forward, launchers.launch_backward
    norm = OwnNorm(ALL, {})
    with pytest.raises(IndexError):
        norm.apply(torch.tensor(1.0, device=DEVICE), None, None, 1e-5)
    assert_right(norm, 3, 5)
    assert (launchers.launch_forward, launchers.launch_backward) == before


def test_what_is_no_packed_matrix_is_refused():
    norm = OwnNorm({}, {})
    with pytest.raises(ValueError, match=r"x has shape \(2, 3, 4\)"):
        norm.launch_forward(torch.zeros(2, 3, 4, device=DEVICE), None, None, 1e-5)
    with pytest.raises(ValueError, match="the columns of x are 3 elements apart"):
        norm.launch_forward(torch.zeros(4, 3, device=DEVICE).t(), None, None, 1e-5)


def test_two_norms_live_side_by_side():
    """Each has modules of its own: a second gathering changes nothing of a model that trains."""
    first = OwnNorm(ALL, {})
    second = OwnNorm(ALL | {"08a": ALL["08a"].replace("+ b[None, :]", "+ 2 * b[None, :]")}, {})
    x, b = torch.randn(3, 4, device=DEVICE), torch.ones(4, device=DEVICE)
    difference = second.apply(x, None, b, 1e-5) - first.apply(x, None, b, 1e-5)
    assert torch.allclose(difference, b.expand(3, 4), atol=1e-5)


@pytest.mark.parametrize("own", [[], list(ROLES)], ids=["the course's", "the learner's"])
def test_a_model_trains_with_it_as_with_pytorchs(own):
    norm = OwnNorm({key: ALL[key] for key in own}, {})
    text = transformer.encode("the mean of a row, the row of a mean, and the root of both. " * 40)
    losses = {}
    for name, make in (("ours", norm.Module), ("theirs", torch.nn.LayerNorm)):
        model = transformer.build(text, make, SMALL, device=DEVICE)
        losses[name] = list(transformer.train(model, text, 10, SMALL))
    assert max(abs(a - b) for a, b in zip(losses["ours"], losses["theirs"], strict=True)) < 1e-4
    assert losses["ours"][0] != losses["ours"][-1]


def test_the_module_is_pytorchs_but_for_its_forward():
    norm = OwnNorm({}, {})
    ours, theirs = norm.Module(6), torch.nn.LayerNorm(6)
    torch.nn.init.normal_(theirs.weight)
    result = ours.load_state_dict(theirs.state_dict())
    assert (
        not result.missing_keys
        and not result.unexpected_keys
        and torch.equal(ours.weight, theirs.weight)
    )


@pytest.mark.skipif(course_lib.MODE != "gpu", reason="needs a GPU")
def test_on_a_gpu_the_parts_run_there(folder):
    for key in ROLES:
        shutil.copy(paths.SOLUTIONS / f"{catalog.get(key).file}.py", folder)
    norm = gather_norm()
    assert all(whose(norm).values()) and DEVICE == "cuda"
    assert_right(norm, 1000, 1000, dtype=torch.float16)

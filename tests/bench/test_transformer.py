"""The small transformer: reproducible from a seed, learns, and learns the same with the course's norms as with PyTorch's."""

from __future__ import annotations

import math

import pytest
import torch

import course_lib
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.bench import transformer
from course_lib.bench.transformer import Size, Text, batches, build, course_text, encode, loss_on, train
from course_lib.norms import modules

DEVICE = course_lib.DEVICE
SMALL = Size(layers=1, heads=2, channels=8, context=6, batch=2)
PROSE = encode("the mean of a row, the row of a mean, and the root of both. " * 40)


def losses(norm, steps, size=SMALL, **options):
    return list(train(build(PROSE, norm, size, device=DEVICE), PROSE, steps, size, **options))


@pytest.mark.parametrize(
    ("ours", "theirs"), [(modules.LayerNorm, torch.nn.LayerNorm), (modules.RMSNorm, torch.nn.RMSNorm)]
)
def test_both_norms_train_alike(ours, theirs):
    """To 1e-5 nats over ten steps: a rounding of the loss is 2e-7, and training amplifies."""
    got, want = losses(ours, 10), losses(theirs, 10)
    assert max(abs(a - b) for a, b in zip(got, want, strict=True)) < 1e-5
    assert want[0] != want[-1]


def test_a_norm_without_dw_is_seen_by_that_comparison():
    class NeverDw(torch.nn.LayerNorm):
        def forward(self, x):
            return torch.nn.functional.layer_norm(x, self.normalized_shape, self.weight.detach(), self.bias, self.eps)

    got, want = losses(NeverDw, 10), losses(torch.nn.LayerNorm, 10)
    assert max(abs(a - b) for a, b in zip(got, want, strict=True)) > 1e-3


def test_it_learns_more_than_how_often_characters_occur():
    size = Size(batch=8)
    model = build(PROSE, torch.nn.LayerNorm, size, device=DEVICE)
    before = loss_on(model, PROSE, size)
    for _ in train(model, PROSE, 60, size):
        pass
    assert before > PROSE.entropy() > loss_on(model, PROSE, size) + 0.5


def test_a_seed_fixes_weights_and_batches_and_leaves_the_global_generator_alone():
    torch.manual_seed(5)
    state = torch.get_rng_state()
    one, two, other = (build(PROSE, torch.nn.LayerNorm, SMALL, seed=seed) for seed in (3, 3, 4))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not torch.equal(one.head.weight, other.head.weight)
    assert losses(torch.nn.LayerNorm, 3) == losses(torch.nn.LayerNorm, 3) != losses(torch.nn.LayerNorm, 3, seed=1)
    assert torch.equal(torch.get_rng_state(), state)


def test_norms_draw_nothing_so_that_every_norm_gets_the_same_weights():
    layer, rms = build(PROSE, modules.LayerNorm, SMALL), build(PROSE, modules.RMSNorm, SMALL)
    assert torch.equal(layer.head.weight, rms.head.weight)
    assert sum(isinstance(module, modules.RMSNorm) for module in rms.modules()) == SMALL.norms


def test_no_character_sees_a_later_one():
    model = build(PROSE, torch.nn.LayerNorm, SMALL)
    codes = PROSE.codes[None, :6].clone()
    before = model(codes)
    codes[0, 4] = (codes[0, 4] + 1) % len(PROSE.characters)
    after = model(codes)
    assert torch.equal(before[0, :4], after[0, :4]) and not torch.allclose(before[0, 4], after[0, 4])


def test_batches_are_the_text_and_the_text_one_further_on():
    codes, wanted = next(batches(PROSE, SMALL, seed=0))
    assert codes.shape == wanted.shape == (2, 6) and torch.equal(codes[:, 1:], wanted[:, :-1])
    decoded = "".join(PROSE.characters[code] for code in codes[0])
    assert decoded in "the mean of a row, the row of a mean, and the root of both. " * 2


def test_entropy():
    assert Text(torch.tensor([0, 1, 0, 1]), "ab").entropy() == pytest.approx(math.log(2))
    with pytest.raises(CourseError, match="two different characters"):
        encode("aaaa")


def test_the_courses_text_is_prose_and_no_code(monkeypatch, tmp_path):
    text = course_text()
    assert "LayerNorm" in text and "import course_lib\n" not in text and "assert " not in text.splitlines()[0]
    (tmp_path / "01_a.py").write_text(
        "# %% [markdown]\n# # Title\n#\n# Words.\n\n# %%\nx = 1  # a comment\n# %% [markdown]\n# More.\n"
    )
    monkeypatch.setattr(paths, "NOTEBOOK_SOURCES", tmp_path)
    assert course_text() == "# Title\n\nWords.\nMore."
    monkeypatch.setattr(paths, "NOTEBOOK_SOURCES", tmp_path / "none")
    with pytest.raises(CourseError, match="no prose"):
        course_text()


def test_a_norm_sees_as_many_rows_as_the_size_says():
    seen = []

    class Watching(torch.nn.LayerNorm):
        def forward(self, x):
            seen.append(tuple(x.shape))
            return super().forward(x)

    losses(Watching, 1)
    assert len(seen) == SMALL.norms and {(B * T, C) for B, T, C in seen} == {(SMALL.rows, SMALL.channels)}
    assert transformer.TOY.rows <= 64  # what the interpreter has time for

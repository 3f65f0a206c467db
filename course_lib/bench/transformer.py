"""A small character-level transformer whose norm is passed in, its training text, and a training loop.

Lesson 10 trains it twice from the same seed, with PyTorch's norm and with the course's, and compares the losses. It is a
plain decoder: norms in front of attention and of the multilayer perceptron, a last one in front of the output.

Source: Vaswani et al. 2017, "Attention Is All You Need"; norms placed as in Xiong et al. 2020, "On Layer Normalization in
the Transformer Architecture".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.base import paths
from course_lib.base.errors import CourseError

Norm = Callable[[int], nn.Module]  # takes the number of channels, as torch.nn.LayerNorm and torch.nn.RMSNorm do


@dataclass(frozen=True)
class Size:
    """Of a model and its batches. A norm sees batch * context rows of ``channels`` columns, 2 * layers + 1 times a step."""

    layers: int = 1
    heads: int = 2
    channels: int = 32
    context: int = 16
    batch: int = 2

    @property
    def norms(self) -> int:
        return 2 * self.layers + 1

    @property
    def rows(self) -> int:
        return self.batch * self.context


TOY = Size()


class Block(nn.Module):
    """Attention, then a multilayer perceptron, each behind a norm and beside a residual path."""

    def __init__(self, size: Size, norm: Norm):
        super().__init__()
        C = size.channels
        self.heads = size.heads
        self.norm1, self.norm2 = norm(C), norm(C)
        self.qkv, self.out = nn.Linear(C, 3 * C), nn.Linear(C, C)
        self.up, self.down = nn.Linear(C, 4 * C), nn.Linear(4 * C, C)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(B, T, C))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """Predicts the next character of every prefix.

    Args:
        vocabulary: number of different characters.
        norm: makes a norm over the given number of channels.
    """

    def __init__(self, vocabulary: int, size: Size = TOY, norm: Norm = nn.LayerNorm):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, size.channels)
        self.positions = nn.Embedding(size.context, size.channels)
        self.blocks = nn.ModuleList(Block(size, norm) for _ in range(size.layers))
        self.norm = norm(size.channels)
        self.head = nn.Linear(size.channels, vocabulary)

    def forward(self, codes: Tensor) -> Tensor:
        """Logits, shape (batch, context, vocabulary), for codes of shape (batch, context)."""
        x = self.tokens(codes) + self.positions.weight[: codes.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


@dataclass(frozen=True)
class Text:
    """A text as numbers: ``codes`` index ``characters``."""

    codes: Tensor
    characters: str

    def entropy(self) -> float:
        """Of single characters, in nats: the loss of a model that knows how often each occurs, and nothing else."""
        share = torch.bincount(self.codes).double() / len(self.codes)
        return float(-(share[share > 0] * share[share > 0].log()).sum())


def encode(text: str) -> Text:
    """Raises: CourseError if there are fewer than two different characters."""
    characters = "".join(sorted(set(text)))
    if len(characters) < 2:
        raise CourseError("a training text needs at least two different characters.")
    number = {character: code for code, character in enumerate(characters)}
    return Text(torch.tensor([number[character] for character in text]), characters)


def course_text() -> str:
    """The prose of the lessons: the markdown of every notebook source, in the order of the course.

    Raises: CourseError if there is none.
    """
    pieces = []
    for path in sorted(paths.NOTEBOOK_SOURCES.glob("*.py")):
        prose = False
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("# %%"):
                prose = "[markdown]" in line
            elif prose and line.startswith("#"):
                pieces.append(line.removeprefix("#").removeprefix(" "))
    if not pieces:
        raise CourseError(f"there is no prose to train on in {paths.shown(paths.NOTEBOOK_SOURCES)}.")
    return "\n".join(pieces)


def batches(text: Text, size: Size, seed: int, device: str | torch.device = "cpu") -> Iterator[tuple[Tensor, Tensor]]:
    """Endless pairs of codes and the codes one further on, each (batch, context). The same seed gives the same pairs anywhere."""
    generator = torch.Generator().manual_seed(seed)
    window = torch.arange(size.context + 1)
    while True:
        starts = torch.randint(len(text.codes) - size.context, (size.batch, 1), generator=generator)
        piece = text.codes[starts + window].to(device)
        yield piece[:, :-1], piece[:, 1:]


def build(text: Text, norm: Norm, size: Size = TOY, seed: int = 0, device: str | torch.device = "cpu") -> Transformer:
    """A model with the weights that ``seed`` draws: the same for every norm that draws none, on every device."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Transformer(len(text.characters), size, norm)
    return model.to(device)


def train(
    model: nn.Module,
    text: Text,
    steps: int,
    size: Size = TOY,
    *,
    seed: int = 0,
    rate: float = 2e-2,
    autocast: torch.dtype | None = None,
) -> Iterator[float]:
    """Train in place with AdamW, the rate falling to a tenth along a cosine; yields the loss of each step, in nats a character.

    Args:
        seed: of the batches.
        autocast: the dtype that torch.autocast uses; None for none.
    """
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.55 + 0.45 * math.cos(math.pi * step / steps))
    for _, (codes, wanted) in zip(range(steps), batches(text, size, seed, device), strict=False):
        with torch.autocast(device.type, dtype=autocast, enabled=autocast is not None):
            loss = F.cross_entropy(model(codes).flatten(0, 1).float(), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        yield loss.item()


@torch.no_grad()
def loss_on(model: nn.Module, text: Text, size: Size = TOY, *, windows: int = 128, seed: int = 1) -> float:
    """The mean loss over ``windows`` random pieces of the text, in nats a character: steadier than the loss of one small batch."""
    codes, wanted = next(batches(text, replace(size, batch=windows), seed, next(model.parameters()).device))
    return F.cross_entropy(model(codes).flatten(0, 1).float(), wanted.flatten()).item()

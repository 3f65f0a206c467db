"""The parts of PyTorch with which a module may define things that a tab cannot use: autograd
functions, operators, layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ._refusal import refuse


class Function:
    """torch.autograd.Function: a subclass can be defined."""

    @classmethod
    def apply(cls, *arguments: Any, **keywords: Any) -> NoReturn:
        refuse("torch.autograd.Function.apply")


class Module:
    """torch.nn.Module: a subclass can be defined, and none can be made."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        refuse("a module of torch.nn")


class LayerNorm(Module):
    """torch.nn.LayerNorm."""


class RMSNorm(Module):
    """torch.nn.RMSNorm."""


class Parameter:
    """torch.nn.Parameter."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        refuse("torch.nn.Parameter")


class GradcheckError(RuntimeError):
    """torch.autograd.gradcheck.GradcheckError."""


def gradcheck(*arguments: Any, **keywords: Any) -> NoReturn:
    refuse("torch.autograd.gradcheck")


def once_differentiable(function: Callable) -> Callable:
    return function


class _Operator:
    """The operator that torch.library.custom_op makes from a function."""

    def __init__(self, name: str) -> None:
        self._name = name

    def register_fake(self, function: Callable) -> Callable:
        return function

    def register_autograd(
        self, backward: Callable, *, setup_context: Callable | None = None
    ) -> None:
        """Do nothing: no gradient flows in a tab."""

    def __call__(self, *arguments: Any, **keywords: Any) -> NoReturn:
        refuse(f"the operator {self._name}")


def custom_op(name: str, *, mutates_args: Any) -> Callable[[Callable], _Operator]:
    return lambda function: _Operator(name)

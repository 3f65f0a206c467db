"""The error, one line of text, for everything that the stand-in lacks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NoReturn

_PACKAGE = __name__.rpartition(".")[0]  # "torch" in a tab; a test may load it under another name


def _say(feature: str) -> str:
    return (
        f"{feature} needs PyTorch, which a browser tab does not have: open this lesson on your"
        " machine."
    )


class NeedsPyTorch(AttributeError):
    """Raised where a lesson asks for more of PyTorch than a tab has. As an AttributeError it lets
    ``hasattr`` answer False."""

    def __init__(self, feature: str) -> None:
        super().__init__(_say(feature))


def refuse(feature: str) -> NoReturn:
    """Raise NeedsPyTorch for ``feature``."""
    raise NeedsPyTorch(feature)


class Submodule(ModuleType):
    """A module of PyTorch with a closed set of names."""

    def __init__(self, name: str, **names: Any) -> None:
        """Make the module ``name`` ("nn.functional") and let Python import it."""
        super().__init__(f"{_PACKAGE}.{name}")
        self.__path__ = []  # marks a package: Python then asks _Finder for a name that is missing
        self.__dict__.update(names)
        sys.modules[self.__name__] = self

    def __getattr__(self, name: str) -> NoReturn:
        raise NeedsPyTorch(f"torch.{self.__name__.removeprefix(_PACKAGE + '.')}.{name}")


class _Finder:
    """Refuses ``import torch.absent`` and ``from torch import absent``. Python asks it after all
    other finders."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        if name.startswith(f"{_PACKAGE}."):
            raise ModuleNotFoundError(_say(f"torch{name.removeprefix(_PACKAGE)}"))


sys.meta_path.append(_Finder)

"""The one answer to everything that the stand-in lacks."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, NoReturn

_PACKAGE = __name__.rpartition(".")[0]  # "torch" in a tab; a test may load it under another name


class NeedsPyTorch(AttributeError):
    """Raised where a lesson asks for more of PyTorch than a tab has. As an AttributeError it lets ``hasattr`` answer False."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} needs PyTorch, which a browser tab does not have: open this lesson on your machine.")


def refuse(what: str) -> NoReturn:
    """Raises: NeedsPyTorch."""
    raise NeedsPyTorch(what)


class Submodule(ModuleType):
    """A module of PyTorch with a closed set of names."""

    def __init__(self, name: str, **names: Any) -> None:
        """Make the module ``name`` ("nn.functional") and let Python import it."""
        super().__init__(f"{_PACKAGE}.{name}")
        self.__path__ = []  # a package, so that Python looks for its submodules in sys.modules
        self.__dict__.update(names)
        sys.modules[self.__name__] = self

    def __getattr__(self, name: str) -> NoReturn:
        raise NeedsPyTorch(f"torch.{self.__name__.removeprefix(_PACKAGE + '.')}.{name}")

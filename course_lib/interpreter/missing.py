"""Refuse operations that the interpreter cannot run, in one sentence, which says that a GPU can run
them."""

from __future__ import annotations

from typing import Any, NoReturn

from course_lib.base.translation import gettext as _
from course_lib.interpreter.meaning import NotInCpuMode

# they fail before they reach an operation of the builder
_FUNCTIONS = ("dot_scaled", "map_elementwise")
_NAMES = {
    "inline_asm": "inline_asm_elementwise",
    "descriptor_reduce": "tensor_descriptor's atomics",
}


def say_what_is_missing() -> None:
    """Make each operation that the interpreter lacks raise :class:`NotInCpuMode`.

    Raises: AttributeError if this Triton's interpreter has no builder.
    """
    from triton.runtime import interpreter
    from triton.runtime.interpreter import InterpreterBuilder

    stock_core = interpreter._patch_lang_core

    def _patch_lang_core(language: Any, scope: Any) -> None:
        stock_core(language, scope)
        for name in _FUNCTIONS:
            if hasattr(language, name):
                scope.set_attr(language, name, lambda *rest, name=name, **named: refuse(name))

    def __getattr__(self: Any, name: str) -> Any:
        if not name.startswith("create_"):
            raise AttributeError(name)
        return refuse(name.removeprefix("create_"))

    def create_inline_asm(self: Any, *rest: Any) -> NoReturn:
        refuse("inline_asm")

    interpreter._patch_lang_core = _patch_lang_core
    for hook in (__getattr__, create_inline_asm):
        setattr(InterpreterBuilder, hook.__name__, hook)


def refuse(operation: str) -> NoReturn:
    """Raise NotInCpuMode for the builder's ``operation``."""
    name = _NAMES.get(operation, operation)
    words = _(
        "CPU mode cannot run tl.{name}; a GPU can. Check this kernel on a GPU, or write it without"
        " {name}"
    )
    raise NotInCpuMode(words.format(name=name))

"""Triton's language is put into its interpreted form once a launch, and what that takes is looked for once a process.

The stock interpreter looks through all of the language at each launch, and again at each call of a jitted helper, ``tl.sum``
among them: half of the time of a small launch. A helper finds the form there that its launch gave it, and the next launch
sets what the first one found.
"""

from __future__ import annotations

import weakref
from typing import Any

from course_lib.interpreter.rewriting import LANGUAGE


def patch_language_once() -> None:
    """Let a launch set what an earlier one found, and a helper's call use what its launch has set.

    Raises: AttributeError if this Triton's interpreter patches its language in another way.
    """
    import triton.language as tl
    from triton.runtime import interpreter

    stock, Scope, missing = interpreter._patch_lang, interpreter._LangPatchScope, interpreter._MISSING

    class LaunchScope(Scope):
        """What a launch changed, with the helpers that it called. ``modules``: those that have the interpreted form."""

        def __init__(self, changes: list, modules: set[int]) -> None:
            super().__init__()
            self._changes, self.modules = changes, modules

        def restore(self) -> None:
            super().restore()
            self.modules.clear()

    # of the launch under way. A helper that is called outside of a launch keeps no scope, so that none is alive then.
    launch: list[weakref.ref[LaunchScope]] = []
    # by what is to be patched and what is already: owner, name, value before, value after
    found: dict[tuple[frozenset[int], frozenset[int]], list[tuple[Any, str, Any, Any]]] = {}

    def set_attributes(function: Any, modules: set[int], already: set[int]) -> list:
        """Do what the stock function does. Returns the changes as its scope keeps them."""
        key = frozenset(modules), frozenset(already)
        known = found.get(key)
        if known is not None and all(getattr(owner, name, missing) is before for owner, name, before, _ in known):
            scope = Scope()
            for owner, name, _, after in known:
                scope.set_attr(owner, name, after)
            return scope._changes
        changes = stock(function)._changes
        first = {(id(owner), name): (owner, name, before) for owner, name, before in reversed(changes)}
        found[key] = [(owner, name, before, getattr(owner, name)) for owner, name, before in first.values()]
        return changes

    def _patch_lang(function):
        modules = {id(value) for value in function.__globals__.values() if value is tl or value is tl.core}
        if not modules:  # a helper of a module that imports names of the language, and not the language
            function.__globals__[LANGUAGE] = tl
            modules = {id(tl)}
        current = launch[0]() if launch else None
        if current is None or not current.modules:
            scope = LaunchScope(set_attributes(function, modules, set()), modules)
            launch[:] = [weakref.ref(scope)]
            return scope
        if not modules <= current.modules:
            current._changes += set_attributes(function, modules, current.modules)
            current.modules |= modules
        return Scope()

    checks_semantic, semantic = tl.core.builtin(lambda: None).__code__, interpreter.interpreter_semantic

    def _patch_attr(owner, name, member, builder, scope):
        # a function of the language checks that it was given a semantic, and is called through two functions for that
        function = member.__wrapped__ if getattr(member, "__code__", None) is checks_semantic else member

        def call(*args, **named):
            named["_semantic"] = semantic
            return function(*args, **named)

        scope.set_attr(owner, name, call)

    interpreter._patch_lang, interpreter._patch_attr = _patch_lang, _patch_attr

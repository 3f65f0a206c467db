"""Replace the functions of Triton's language by their interpreted forms once per launch, and search
for them once per process.

The stock interpreter searches the whole language at each launch, and again at each call of a jitted
helper such as ``tl.sum``. That takes much of the time of a small launch. Here a helper uses the
forms that its launch has set, and the next launch sets the forms that the first launch found.
"""

from __future__ import annotations

import weakref
from typing import Any

from course_lib.interpreter.rewriting import LANGUAGE


def patch_language_once() -> None:
    """Let a launch set the forms that an earlier launch found, and let the call of a helper use
    those of its launch.

    Raises: AttributeError if this Triton's interpreter patches its language in another way.
    """
    import triton.language as tl
    from triton.runtime import interpreter

    stock = interpreter._patch_lang
    Scope = interpreter._LangPatchScope
    missing = interpreter._MISSING

    class LaunchScope(Scope):
        """The changes of a launch and of the helpers that it called. ``modules`` are the modules
        that have their interpreted form."""

        def __init__(self, changes: list, modules: set[int]) -> None:
            super().__init__()
            self._changes, self.modules = changes, modules

        def restore(self) -> None:
            super().restore()
            self.modules.clear()

    # The scope of the running launch. A helper that is called outside of a launch keeps no scope,
    # so that none is alive then.
    launch: list[weakref.ref[LaunchScope]] = []
    # The key is what must be patched and what is patched already; the value lists owner, name,
    # value before, value after.
    changes_by_modules: dict[
        tuple[frozenset[int], frozenset[int]], list[tuple[Any, str, Any, Any]]
    ] = {}

    def set_attributes(function: Any, modules: set[int], already: set[int]) -> list:
        """Make the changes that the stock function makes. Return them in the form that its scope
        keeps."""
        key = frozenset(modules), frozenset(already)
        earlier_changes = changes_by_modules.get(key)
        if earlier_changes is not None and all(
            getattr(owner, name, missing) is before for owner, name, before, _ in earlier_changes
        ):
            scope = Scope()
            for owner, name, _, after in earlier_changes:
                scope.set_attr(owner, name, after)
            return scope._changes
        changes = stock(function)._changes
        originals = {
            (id(owner), name): (owner, name, before) for owner, name, before in reversed(changes)
        }
        changes_by_modules[key] = [
            (owner, name, before, getattr(owner, name))
            for owner, name, before in originals.values()
        ]
        return changes

    def _patch_lang(function):
        modules = {
            id(value) for value in function.__globals__.values() if value is tl or value is tl.core
        }
        # a helper in a module that imports names of the language, but not the language itself
        if not modules:
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

    checks_semantic = tl.core.builtin(lambda: None).__code__
    semantic = interpreter.interpreter_semantic

    def _patch_attr(owner, name, member, builder, scope):
        # A function of the language is wrapped to check that it was given a semantic. Call the
        # function inside of the wrapper.
        function = (
            member.__wrapped__ if getattr(member, "__code__", None) is checks_semantic else member
        )

        def call(*args, **named):
            named["_semantic"] = semantic
            return function(*args, **named)

        scope.set_attr(owner, name, call)

    interpreter._patch_lang, interpreter._patch_attr = _patch_lang, _patch_attr

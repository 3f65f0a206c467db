"""Finds the shortcuts that an exercise forbids, in a file's text and in the operations that PyTorch runs.

This is a message to the learner, not a fence: Python can reach any function without its name. What shuts a submission in is the
sandbox, and what decides is the bytes that come out.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping

from course_lib.grading.submission import needed
from course_lib.grading.submission.kernel_check import find_root, list_bound
from course_lib.grading.submission.source import make_refusal

_SPREAD = frozenset("var nanvar var_mean std nanstd std_mean cov pvariance variance pstdev stdev".split())
_NORMS = frozenset(
    """layer_norm native_layer_norm LayerNorm rms_norm RMSNorm group_norm native_group_norm GroupNorm instance_norm InstanceNorm1d
    InstanceNorm2d InstanceNorm3d batch_norm native_batch_norm BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm""".split()
)
_GRADIENTS = frozenset(
    """grad backward grad_fn vjp jvp vhp hvp hessian jacobian jacrev jacfwd grad_and_value linearize functional_call
    native_layer_norm_backward""".split()
)
# a forbidden word stands for a computation; these do it, too
_SAME = {
    "var": _SPREAD, "std": _SPREAD, "layer_norm": _NORMS, "rms_norm": _NORMS, "grad": _GRADIENTS, "backward": _GRADIENTS,
}  # fmt: skip


class Shortcuts:
    """The names that an exercise forbids, each with its reason, and every other name of the same computation."""

    def __init__(self, forbidden: Mapping[str, str]):
        same = {other: reason for word, reason in forbidden.items() for other in _SAME.get(word, ())}
        self.reasons = same | dict(forbidden)

    def describe(self, name: str, word: str) -> str | None:
        """Why ``word``, a use of ``name``, is refused; None if it is no shortcut."""
        reason = self.reasons.get(name)
        if reason is None and "backward" in self.reasons and name.endswith("_backward"):
            reason = self.reasons["backward"]
        return None if reason is None else f"`{word}` is a shortcut that this exercise forbids: {reason}."


def check(tree: ast.Module, shortcuts: Shortcuts, file: str) -> None:
    """Check the functions that were cut out of ``file``.

    Raises: Unreadable at the first shortcut, and at the first name that nothing defines.
    """
    imports = dict(needed.list_imports(tree))
    bound = set(list_bound(tree))
    known = bound | imports.keys() | set(dir(builtins)) | {"__file__", "__name__", "__spec__"}
    own = _list_own_attributes(tree)
    has_star = any(
        alias.name == "*" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    )
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                _refuse_shortcut(shortcuts, alias.name, f"{node.module}.{alias.name}", node, file)
        elif isinstance(node, ast.Attribute):
            root = find_root(node)
            of_library = root in imports and root not in bound
            if of_library or node.attr not in own:
                word = ast.unparse(node) if of_library else f".{node.attr}"
                _refuse_shortcut(shortcuts, node.attr, word, node, file)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
            for name in (a.value for a in node.args[1:2] if isinstance(a, ast.Constant) and isinstance(a.value, str)):
                _refuse_shortcut(shortcuts, name, f".{name}", node, file)
        elif isinstance(node, ast.MatchClass):
            for name in node.kwd_attrs:
                _refuse_shortcut(shortcuts, name, f".{name}", node.cls, file)
        elif isinstance(node, ast.Name) and has_star and node.id not in bound:
            _refuse_shortcut(shortcuts, node.id, node.id, node, file)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in known:
            what = f"`{node.id}` is used, and nothing in the file defines it. Is a part still missing, or the name mistyped?"
            raise make_refusal("undefined_name", file, node, what)


def _refuse_shortcut(shortcuts: Shortcuts, name: str, word: str, node: ast.stmt | ast.expr, file: str) -> None:
    if (why := shortcuts.describe(name, word)) is not None:
        raise make_refusal("not_allowed", file, node, why)


def _list_own_attributes(tree: ast.Module) -> set[str]:
    """The attributes that classes of the file have, or that the file gives to objects."""
    found = {
        node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found.update(list_bound(ast.Module(node.body, [])))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("namedtuple"):
            texts = (
                part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )
            found.update(word for text in texts for word in text.replace(",", " ").split())
    return found

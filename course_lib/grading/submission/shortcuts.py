"""Find the shortcuts that an exercise forbids, in a file's text and in the operations that PyTorch
runs.

This is a message to the learner, not a fence: Python can reach any function without its name. The
sandbox confines a submission, and the bytes that come out decide.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Mapping, Set

from course_lib.base.translation import gettext as _
from course_lib.grading.submission import needed
from course_lib.grading.submission.kernel_check import find_root, list_bound
from course_lib.grading.submission.source import make_refusal

_SPREAD = frozenset(
    """var nanvar var_mean std nanstd std_mean cov pvariance variance pstdev stdev covariance
    linear_regression from_samples""".split()
)
# A norm with these words in its name, whatever the rest: `native_layer_norm`, `nn.BatchNorm1d`,
# `batch_norm_stats`. All of them compute the spread of a row, and some return it.
_NORM = re.compile("(batch|group|instance|layer|rms)_?norm", re.IGNORECASE)
_GRADIENTS = frozenset(
    """grad backward grad_fn vjp jvp vhp hvp hessian jacobian jacrev jacfwd grad_and_value linearize functional_call
    native_layer_norm_backward""".split()  # noqa: E501
)
# a forbidden name stands for a computation; these other names run the same one
_SAME = {"var": _SPREAD, "std": _SPREAD, "grad": _GRADIENTS, "backward": _GRADIENTS}
_FORBID_NORMS = ("layer_norm", "rms_norm", "var", "std")


class Shortcuts:
    """The names that an exercise forbids, each with its reason, and every other name of the same
    computation."""

    def __init__(self, forbidden: Mapping[str, str]):
        same = {
            other: reason for word, reason in forbidden.items() for other in _SAME.get(word, ())
        }
        self.reasons = same | dict(forbidden)
        self.reason_for_norms = next(
            (forbidden[word] for word in _FORBID_NORMS if word in forbidden), None
        )

    def describe(self, name: str, word: str) -> str | None:
        """Return why ``word``, a use of ``name``, is refused; None if it is no shortcut."""
        reason = self.reasons.get(name)
        if reason is None and "backward" in self.reasons and name.endswith("_backward"):
            reason = self.reasons["backward"]
        if reason is None and _NORM.search(name):
            reason = self.reason_for_norms
        words = _("`{name}` is a shortcut that this exercise forbids: {reason}.")
        return None if reason is None else words.format(name=word, reason=reason)


def check(tree: ast.Module, shortcuts: Shortcuts, file: str) -> None:
    """Check the functions that were cut out of ``file``.

    Raises: Unreadable at the first shortcut, or else at the first name that nothing defines.
    """
    check_shortcuts(tree, shortcuts, file)
    imports = dict(needed.list_imports(tree))
    bound = set(list_bound(tree))
    defined = bound | imports.keys() | set(dir(builtins)) | {"__file__", "__name__", "__spec__"}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Load)
            and not defined & {node.id, "*"}
        ):
            words = _(
                "`{name}` is used, and nothing in the file defines it. Is a part still missing, or"
                " the name mistyped?"
            )
            raise make_refusal("undefined_name", file, node, words.format(name=node.id))


def check_shortcuts(tree: ast.Module, shortcuts: Shortcuts, file: str) -> None:
    """Check the functions or kernels that were cut out of ``file``. Raises: Unreadable at the first
    shortcut."""
    imports = dict(needed.list_imports(tree))
    bound, own = set(list_bound(tree)), _list_own_attributes(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr):
            for name, word in _list_names(
                node, imports.keys() - bound, own, bound if "*" in imports else None
            ):
                if (why := shortcuts.describe(name, word)) is not None:
                    raise make_refusal("not_allowed", file, node, why)


def _list_names(
    node: ast.stmt | ast.expr, libraries: Set[str], own: set[str], bound: set[str] | None
) -> Iterator[tuple[str, str]]:
    """Yield the names that a node uses from libraries, and as attributes of values, each with its
    text in the file.

    ``bound`` are the file's own names, if the file has an import by a star: then any other name may
    come from the library.
    """
    match node:
        case ast.ImportFrom():
            yield from ((alias.name, f"{node.module}.{alias.name}") for alias in node.names)
        case ast.Attribute() if find_root(node) in libraries:
            yield node.attr, ast.unparse(node)
        case ast.Attribute() if node.attr not in own:
            yield node.attr, f".{node.attr}"
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]):
            yield name, f".{name}"
        case ast.Name() if bound is not None and node.id not in bound:
            yield node.id, node.id
        case ast.Match():
            patterns = (part for part in ast.walk(node) if isinstance(part, ast.MatchClass))
            yield from ((name, f".{name}") for pattern in patterns for name in pattern.kwd_attrs)


def _list_own_attributes(tree: ast.Module) -> set[str]:
    """Return the attributes that classes of the file have, or that the file gives to objects."""
    attributes = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            attributes.update(list_bound(ast.Module(node.body, [])))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("namedtuple"):
            texts = (
                part.value
                for part in ast.walk(node)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )
            attributes.update(word for text in texts for word in text.replace(",", " ").split())
    return attributes

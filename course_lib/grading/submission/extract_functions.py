"""Takes the functions out of a learner's PyTorch or NumPy exercise, without running any of it.

As for kernels: the file is parsed, only functions and plain constants go on to the child, every line at its number, and
in them only names and attributes on a list are allowed. The lists hold what the formulas need: arithmetic, reductions,
shapes, dtypes. What computes the whole answer (``torch.nn.functional``, ``np.var``, autograd) is not there.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping, Set
from types import MappingProxyType

from course_lib.grading.submission.extract_kernels import (
    Kernels,
    Unreadable,
    check_imports,
    fingerprint_function,
    is_plain,
    keep_lines,
    make_refusal,
    parse,
)
from course_lib.grading.submission.places import Located

_TORCH = frozenset(
    """abs add addcmul all allclose any arange as_tensor bfloat16 broadcast_to bool cat clamp clone cumsum diag div dot double einsum empty
    empty_like exp eye finfo flatten float float16 float32 float64 full full_like half int32 int64 is_floating_point isclose isfinite isinf
    isnan log matmul max maximum mean min minimum mul nan_to_num neg ones ones_like outer pow prod reciprocal relu reshape result_type rsqrt
    sign sqrt square squeeze stack std sub sum tensor tile transpose unsqueeze var var_mean where zeros zeros_like Tensor dtype""".split()
)
_TENSOR = frozenset(
    """T abs add all amax amin any argmax bfloat16 bool broadcast_to clamp clone contiguous cumsum device diagonal dim div dot double dtype
    eps exp expand expand_as flatten float half int item isfinite isnan log long matmul max maximum mean mH mT min minimum mm mul mv
    ndim neg new_empty new_full new_ones new_zeros numel permute pow prod reciprocal repeat reshape rsqrt shape sign size sqrt square
    squeeze std sub sum swapaxes t tiny to transpose type_as unflatten unsqueeze unsqueeze_ var view where is_floating_point add_ sub_ mul_
    div_""".split()
)
_NUMPY = frozenset(
    """abs add all any arange array asarray array_split ascontiguousarray atleast_1d atleast_2d broadcast_to ceil clip concatenate
    cumsum divide divmod dot dtype empty empty_like errstate exp expand_dims finfo float16 float32 float64 floor fmax full full_like
    hypot int32 int64 isfinite isnan log log2 matmul max maximum mean min minimum moveaxis multiply ndarray newaxis ones ones_like
    pad power prod ravel reciprocal reshape result_type sign split sqrt square squeeze stack subtract sum swapaxes tile transpose true_divide
    where zeros zeros_like floating""".split()
)
_ARRAY = frozenset(
    """T all any astype clip copy cumsum dot dtype eps flat flatten item itemsize max mean min ndim prod ravel reduce repeat reshape shape size
    squeeze sum swapaxes tiny tolist transpose type""".split()
)
_MATH = frozenset("ceil copysign exp floor fsum inf isfinite isinf isnan log log2 nan pi prod sqrt".split())
_BUILTINS = frozenset(
    """AssertionError abs bool enumerate float int isinstance len list max min pow print range reversed round sum tuple zip True False
    None ValueError""".split()
)
_STATEMENTS = (
    ast.FunctionDef, ast.arguments, ast.arg, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.For, ast.While, ast.If, ast.Return,
    ast.Pass, ast.Assert, ast.Raise, ast.Break, ast.Continue,
)  # fmt: skip
_EXPRESSIONS = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Call, ast.keyword, ast.Name, ast.Attribute, ast.Constant, ast.Subscript,
    ast.Slice, ast.Tuple, ast.List, ast.IfExp, ast.JoinedStr, ast.FormattedValue, ast.Starred, ast.ListComp, ast.GeneratorExp,
    ast.comprehension, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context,
)  # fmt: skip
_OF_TESTS = frozenset("assert_close equal manual_seed rand rand_like randint randn randn_like testing".split())
_MODULES = {
    "torch": {"torch": ("torch", _TORCH), "math": ("math", _MATH)},
    "autograd": {"torch": ("torch", _TORCH), "math": ("math", _MATH)},
    "tests": {"torch": ("torch", _TORCH | _OF_TESTS), "math": ("math", _MATH)},
    "numpy": {"np": ("np", _NUMPY), "numpy": ("numpy", _NUMPY), "math": ("math", _MATH)},
}
_CTX = frozenset(
    "save_for_backward saved_tensors needs_input_grad mark_non_differentiable set_materialize_grads".split()
)
_LAUNCHERS = frozenset({"launch_forward", "launch_backward"})
_VALUES = {
    "torch": _TENSOR, "numpy": _ARRAY,
    "autograd": _TENSOR | _CTX | {"copy_", "detach", "is_contiguous", "requires_grad", "stride", "view_as"},
    "tests": _TENSOR | _OF_TESTS | {"copy_", "fill_", "is_contiguous", "numel", "stride", "view_as"},
}  # fmt: skip
_GIVEN = {"torch": frozenset(), "numpy": frozenset(), "autograd": _LAUNCHERS, "tests": frozenset()}
_HEADER = {
    "torch": "import math; import torch; from torch import Tensor",
    "numpy": "import math; import numpy; import numpy as np",
    "tests": "import math; import torch; from torch import Tensor",
    "autograd": "import math; import torch; from torch import Tensor; from course_lib.norms.launchers import launch_backward, launch_forward",
}
_PLAIN_OF_A_TENSOR = frozenset("shape dtype device ndim numel size dim stride requires_grad".split())


def extract(
    text: str, name: str, wanted: tuple[str, ...], kind: str, forbidden: Mapping[str, str] = MappingProxyType({})
) -> Kernels:
    """The functions of a file's ``text``.

    Args:
        name: of the file, for messages.
        wanted: the functions that have to be there.
        kind: "torch", "numpy", "autograd" or "tests".
        forbidden: attributes of modules and values that this exercise does without, each with the reason.

    Raises: Unreadable if the text does not parse, imports what does not exist, lacks a function of ``wanted``, or uses in a
    function what is not on the list.
    """
    tree = parse(text, name)
    check_imports(
        tree,
        name,
        f"This exercise needs only {'`import numpy as np`' if kind == 'numpy' else '`import torch`'}; remove the line.",
    )
    functions = _find_functions(tree, name, wanted)
    constants = {found: node for node in tree.body if (found := _find_constant_name(node))}
    # what one function keeps on ctx, the other may read
    kept = frozenset(
        node.attr
        for f in functions.values()
        for node in ast.walk(f)
        if kind == "autograd" and isinstance(node, ast.Attribute) and _is_kept(node)
    )
    for function in functions.values():
        _Check(function, name, kind, functions.keys() | constants.keys(), kept, forbidden).run()
    return Kernels(keep_lines(text, [*constants.values(), *functions.values()], _HEADER[kind]), tuple(functions))


def fingerprint(text: str, name: str, wanted: tuple[str, ...]) -> str:
    """A fingerprint of the functions' code, as :func:`course_lib.grading.submission.extract_kernels.fingerprint` of kernels."""
    return "\n".join(
        fingerprint_function(function) for function in _find_functions(parse(text, name), name, wanted).values()
    )


def _find_functions(tree: ast.Module, name: str, wanted: tuple[str, ...]) -> dict[str, ast.FunctionDef]:
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for function in wanted:
        if function not in functions:
            found = f"it has {', '.join(f'`{f}`' for f in functions)}" if functions else "it has no function at all"
            raise Unreadable(
                "no_function",
                f"{name} has no function named `{function}`; {found}. The course calls it by that name: give it back, or `course reset` the file.",
            )
    return functions


def _find_constant_name(node: ast.stmt) -> str | None:
    """The name of ``X = 3``, else None."""
    if (
        isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Name)
        and is_plain(node.value)
    ):
        return node.targets[0].id
    return None


def _is_kept(node: ast.AST) -> bool:
    """True for ``ctx.name`` on the left of an assignment."""
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "ctx"
        and not node.attr.startswith("_")
        and node.attr not in _CTX
    )


def _is_no_tensor(value: ast.expr) -> bool:
    """True for an expression that gives a number, a shape, a dtype or True or False, whatever its names stand for."""
    if isinstance(value, ast.Constant):
        return True
    if isinstance(value, ast.Name):
        return value.id == "eps"
    if isinstance(value, ast.Attribute):
        return value.attr in _PLAIN_OF_A_TENSOR
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Attribute) and value.func.attr in _PLAIN_OF_A_TENSOR
    if isinstance(value, ast.Subscript):
        return _is_no_tensor(value.value)
    if isinstance(value, ast.Compare):
        return all(isinstance(op, (ast.Is, ast.IsNot)) for op in value.ops)
    if isinstance(value, ast.IfExp):
        return _is_no_tensor(value.body) and _is_no_tensor(value.orelse)
    if isinstance(value, (ast.Tuple, ast.List)):
        return all(_is_no_tensor(element) for element in value.elts)
    return isinstance(value, ast.BinOp) and _is_no_tensor(value.left) and _is_no_tensor(value.right)


class _Check:
    """One function against the lists."""

    def __init__(
        self,
        function: ast.FunctionDef,
        file: str,
        kind: str,
        known: Set[str],
        kept: frozenset[str],
        forbidden: Mapping[str, str],
    ):
        self.function, self.file, self.kind = function, file, kind
        self.modules, self.values = _MODULES[kind], _VALUES[kind]
        stored = {
            node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        parameters = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
        nested = {node.name for node in ast.walk(function) if isinstance(node, ast.FunctionDef)}
        for taken in (stored | parameters | nested | known) & (self.modules.keys() | {"Tensor"} | _GIVEN[kind]):
            self.refuse(function, f"`{taken}` is a name that the course gives here; give your own value another one.")
        self.defined = (
            stored | parameters | nested | known | _BUILTINS | self.modules.keys() | {"Tensor"} | _GIVEN[kind]
        )
        self.kept, self.forbidden = kept, forbidden

    def refuse(self, node: ast.AST, what: str, cause: str = "not_allowed"):
        raise make_refusal(cause, self.file, node if isinstance(node, Located) else self.function, what)

    def run(self) -> None:
        for node in ast.walk(self.function):
            if isinstance(node, ast.FunctionDef):
                if node.decorator_list:
                    self.refuse(node, f"`{node.name}` is decorated. Leave the decorator out.")
            elif not isinstance(node, _STATEMENTS + _EXPRESSIONS):
                words = (
                    ast.unparse(node).splitlines()[0][:60]
                    if isinstance(node, (ast.stmt, ast.expr))
                    else type(node).__name__
                )
                self.refuse(
                    node, f"`{words}` is not possible in this exercise: its functions hold arithmetic, loops and `if`."
                )
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and self.kept:
                self._check_kept(node)
            if isinstance(node, ast.Name):
                self._check_name(node)
            if isinstance(node, ast.Attribute):
                self._check_attribute(node)

    def _check_name(self, node: ast.Name) -> None:
        if node.id.startswith("__") or (node.id not in self.defined and hasattr(builtins, node.id)):
            self.refuse(node, f"`{node.id}` is not something this exercise can use.")
        if node.id not in self.defined:
            self.refuse(
                node,
                f"`{node.id}` is used, and nothing in the function defines it. Is a part still missing, or the name mistyped?",
                "undefined_name",
            )

    def _check_kept(self, node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> None:
        """Refuse a tensor put on ctx: autograd would neither notice a change to it nor free it."""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for part in (part for target in targets for part in ast.walk(target) if _is_kept(part)):
            if part not in targets or node.value is None or not _is_no_tensor(node.value):
                self.refuse(
                    node,
                    f"`{ast.unparse(node).splitlines()[0][:60]}` keeps what may be a tensor on ctx, where PyTorch does not notice "
                    "when it is changed. "
                    "Tensors go through ctx.save_for_backward; only numbers, shapes and dtypes are kept as attributes.",
                )

    def _check_attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name) and node.value.id == "ctx" and node.attr in self.kept:
            return
        if isinstance(node.ctx, ast.Store):
            self.refuse(node, f"`{ast.unparse(node)}` is assigned to; assign to names and elements only.")
        module, allowed = (
            self.modules.get(node.value.id, ("", self.values))
            if isinstance(node.value, ast.Name)
            else ("", self.values)
        )
        if node.attr in allowed and node.attr not in self.forbidden:
            return
        if not module and isinstance(node.value, ast.Name) and node.value.id not in self.defined:
            return  # of `F.layer_norm`, what is wrong is `F`
        if node.attr in self.forbidden:
            why, otherwise = f": {self.forbidden[node.attr]}", ""
        elif module:
            why, otherwise = ", which is about the arithmetic inside it", ""
        else:
            why, otherwise = "", ", or correct its name"
        self.refuse(
            node,
            f"`{module}.{node.attr}` is not on the list for this exercise{why}. Write it with sums, products and roots{otherwise}.",
        )

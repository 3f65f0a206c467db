"""Find the line that makes the mistake of a named cause, by a walk back from the wrong output along
the assignments that feed it.

Most causes name a quantity (the divisor, eps, a load's ``other``) and the way in which it is wrong.
A rule looks for code of this form in the statements that feed the output. Without a rule or such
code no line is found, and the verdict shows the line that writes the wrong output.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from course_lib.grading.submission import places
from course_lib.grading.submission.syntax import SyntaxTree, list_names, name_call

Rule = Callable[["Flow"], Iterator[ast.expr | ast.stmt]]
_HALF = ("float16", "bfloat16", "half", "element_ty", "dtype")


@dataclass(frozen=True)
class Flow(SyntaxTree):
    """The data flow into one value of a function.

    Attributes:
        tree, function: the syntax tree of the file, and the function that stores or returns the
            value.
        output: the tensor that is wrong, or that a wrong access was meant for.
        value: the expression that is stored or returned; for a wrong access the access itself.
        access: the store, or the wrong access; None for a value that is returned.
        tensors: tensor name -> the function's parameter that is given this tensor.
    """

    function: ast.FunctionDef
    output: str
    value: ast.expr
    access: ast.Call | None
    tensors: dict[str, str]

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """The statements that feed ``value``, in the order of the file. All assignments and returns
        of a called helper count."""
        return self.trace(self.value)

    def trace(self, *values: ast.AST) -> list[ast.stmt]:
        statements: dict[ast.stmt, None] = {}
        helpers = {node.name: node for node in self.tree.body if isinstance(node, ast.FunctionDef)}
        seen: set[str] = set()
        waiting: list[ast.AST] = list(values)
        while waiting:
            for name in sorted(list_names(waiting.pop()) - seen):
                seen.add(name)
                home = helpers.get(name)
                if home is not None and home is not self.function:
                    parts = (ast.Assign, ast.AugAssign, ast.Return)
                    feeding = [node for node in ast.walk(home) if isinstance(node, parts)]
                else:
                    feeding = self.list_bindings(name)
                for statement in feeding:
                    if statement not in statements:
                        statements[statement] = None
                        waiting += [
                            node
                            for node in ast.iter_child_nodes(statement)
                            if isinstance(node, ast.expr)
                        ]
        return sorted(statements, key=lambda statement: statement.lineno)

    @cached_property
    def bindings(self) -> dict[str, list[ast.stmt]]:
        assignments: dict[str, list[ast.stmt]] = {}
        for node in ast.walk(self.function):
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For)):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    for name in list_names(target):
                        assignments.setdefault(name, []).append(node)
        return assignments

    def list_bindings(self, name: str) -> list[ast.stmt]:
        """Return the statements of the function that give ``name`` a value."""
        return self.bindings.get(name, [])

    def walk(self) -> Iterator[ast.expr]:
        """Yield every expression of the statements that feed the value, in the order of the file;
        then those of the value itself."""
        for statement in self.statements:
            roots = [statement.iter] if isinstance(statement, ast.For) else [statement]
            yield from (
                node for root in roots for node in ast.walk(root) if isinstance(node, ast.expr)
            )
        yield from (node for node in ast.walk(self.value) if isinstance(node, ast.expr))

    def calls(self, *names: str) -> Iterator[ast.Call]:
        for node in self.walk():
            if isinstance(node, ast.Call) and name_call(node) in names:
                yield node

    def resolve(self, node: ast.expr) -> ast.expr:
        """Return the expression that a name stands for, if one plain assignment binds it; return
        any other expression as it is."""
        seen: set[str] = set()
        while isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            match self.list_bindings(node.id):
                case [ast.Assign(targets=[ast.Name()], value=value)]:
                    node = value
        return node

    def find_loads(self, tensor: str) -> Iterator[ast.Call]:
        pointer = self.tensors.get(tensor)
        for call in self.calls("load"):
            if call.args and pointer in list_names(call.args[0]):
                yield call

    @property
    def address(self) -> list[ast.expr]:
        return self.access.args[:1] if self.access is not None else []

    @property
    def mask(self) -> ast.expr | None:
        return None if self.access is None else _find_argument(self.access, "mask")


def _list_operations(nodes: Iterable[ast.AST], operator: type[ast.operator]) -> list[ast.BinOp]:
    return [node for node in nodes if isinstance(node, ast.BinOp) and isinstance(node.op, operator)]


def _find_argument(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _is_constant(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)
    )


def _is_sum(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and name_call(node) in ("sum", "mean", "var", "std")


def _is_length(node: ast.expr) -> bool:
    """Return True for N itself, or for the last size of a shape."""
    if isinstance(node, ast.Call) and name_call(node) in ("size", "to", "float", "astype"):
        return name_call(node) == "size" or _is_length(node.func.value)  # type: ignore[union-attr]
    if isinstance(node, ast.Subscript):
        return (
            isinstance(node.value, ast.Attribute)
            and node.value.attr == "shape"
            and ast.unparse(node.slice) in ("-1", "1")
        )
    return isinstance(node, ast.Name) and node.id in ("N", "n")


def _holds_a_sum(flow: Flow, node: ast.expr) -> bool:
    return any(_is_sum(part) for part in ast.walk(node)) or any(
        _is_sum(part)
        for name in ast.walk(node)
        if isinstance(name, ast.Name)
        for part in ast.walk(flow.resolve(name))
    )


# ---- rules: each yields code that is wrong in the way that the cause says, or the place of the
# quantity that the cause names


def _find_divisors(flow: Flow) -> Iterator[ast.expr]:
    """Yield sums over the row that are not divided by N, and divisions of them by something else
    than N."""
    divided = set()
    for node in _list_operations(flow.walk(), ast.Div):
        if _holds_a_sum(flow, node.left):
            names = [part for part in ast.walk(node.left) if isinstance(part, ast.Name)]
            divided.update(
                part for root in (node.left, *map(flow.resolve, names)) for part in ast.walk(root)
            )
            if not _is_length(flow.resolve(node.right)):
                yield node
    for call in flow.calls("sum", "mean", "var", "std"):
        if name_call(call) in ("var", "std"):
            yield from _yield_if(call, _is_corrected(call))
        elif name_call(call) == "mean":
            yield from _yield_if(call, not _is_along_rows(call))
        elif call not in divided:
            yield call


def _is_corrected(call: ast.Call) -> bool:
    """Return True if a call of var or std divides by N - 1, as PyTorch does by default."""
    correction = _find_argument(call, "correction") or _find_argument(call, "unbiased")
    return correction is None or (isinstance(correction, ast.Constant) and bool(correction.value))


def _yield_if(node: ast.expr, holds: bool) -> Iterator[ast.expr]:
    if holds:
        yield node


def _is_along_rows(call: ast.Call) -> bool:
    """Return True if the reduction goes over dimension 1 or -1."""
    along = _find_argument(call, "dim") or _find_argument(call, "axis")
    if along is None:
        along = next(
            iter(
                call.args[1:]
                if isinstance(call.func, ast.Attribute)
                and ast.unparse(call.func.value) in ("tl", "np", "torch")
                else call.args
            ),
            None,
        )
    return along is not None and ast.unparse(along) in ("-1", "1", "(-1,)", "(1,)")


def _find_other_axes(flow: Flow) -> Iterator[ast.expr]:
    for call in flow.calls("sum", "mean", "var", "std"):
        if not _is_along_rows(call):
            yield call


def _find_roots(flow: Flow) -> Iterator[ast.expr]:
    yield from flow.calls("rsqrt", "sqrt")


def _find_eps(flow: Flow) -> Iterator[ast.expr]:
    for node in flow.walk():
        if isinstance(node, ast.Name) and node.id == "eps":
            yield node


def _find_fixed_eps(flow: Flow) -> Iterator[ast.expr]:
    for node in flow.walk():
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, float)
            and 0 < node.value < 0.1
        ):
            yield node


def _find_variance(flow: Flow) -> Iterator[ast.expr | ast.stmt]:
    """Yield the code that computes the number under the root."""
    for call in flow.calls("rsqrt", "sqrt"):
        inside = call.args[0] if call.args else call
        names = [
            n
            for n in ast.walk(inside)
            if isinstance(n, ast.Name) and n.id not in ("eps", "N", "tl", "torch", "np")
        ]
        if any(isinstance(node, ast.Call) for node in ast.walk(inside)) or not names:
            yield call
        else:
            bindings = (made for name in names for made in flow.list_bindings(name.id))
            # where a sum begins, such as M2 = 0.0, nothing is computed
            yield from (
                made
                for made in bindings
                if not (isinstance(made, ast.Assign) and _is_constant(made.value))
            )


def _find_swallowing(flow: Flow) -> Iterator[ast.expr]:
    """Yield comparisons like ``x == x``, and calls that test for a NaN or remove it."""
    for node in flow.walk():
        if isinstance(node, ast.Compare) and ast.dump(node.left) == ast.dump(node.comparators[0]):
            yield node
    yield from flow.calls("nan_to_num", "isnan", "isfinite", "nansum", "nanmean")


def _list_casts(flow: Flow, with_last: bool = False) -> Iterator[tuple[ast.Call, str]]:
    """Yield each cast and each new accumulator with the dtype that it names. ``with_last``: also
    the cast of the value that is stored or returned."""
    for node in flow.walk():
        if not isinstance(node, ast.Call) or (node is flow.value and not with_last):
            continue
        if name_call(node) in ("to", "astype", "type") and node.args:
            yield node, ast.unparse(node.args[0])
        elif name_call(node) in ("half", "bfloat16"):
            yield node, "half"
        elif name_call(node) in ("zeros", "full", "empty", "zeros_like") and (
            dtype := _find_argument(node, "dtype")
        ):
            yield node, ast.unparse(dtype)


def _find_half_casts(flow: Flow) -> Iterator[ast.expr]:
    for node, dtype in _list_casts(flow):
        if dtype.endswith(_HALF):
            yield node


def _find_unwidened(flow: Flow) -> Iterator[ast.expr]:
    """Yield loads that are not cast at once."""
    for call in flow.calls("load"):
        parent = flow.parents.get(call)
        if not (isinstance(parent, ast.Attribute) and parent.attr == "to"):
            yield call


def _find_squares_as_given(flow: Flow) -> Iterator[ast.expr]:
    """Yield arithmetic on the parameters x and dy in their own dtype."""
    parameters = {argument.arg for argument in flow.function.args.args}
    for node in flow.walk():
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.left, ast.Name)
            and node.left.id in parameters & {"x", "dy"}
        ):
            yield node


def _find_casts_of_others(flow: Flow) -> Iterator[ast.expr]:
    """Yield casts to the dtype of another tensor than the one that is stored to. The cast of a
    returned value is left out."""
    target = {name for address in flow.address for name in list_names(address)}
    for node, dtype in _list_casts(flow, with_last=flow.access is not None):
        if "dtype" in dtype and not target & set(dtype.split(".")):
            yield node


def _find_widths(flow: Flow) -> Iterator[ast.expr | ast.stmt]:
    """Yield products of the address whose row number is narrow where it stands; then statements
    without int64 that make such a row number, or the number of the program."""
    for address in flow.address:
        made = [statement for statement in flow.trace(address) if isinstance(statement, _MAKING)]
        factors: list[ast.stmt] = []
        for node in (address, *made):
            for product in _list_operations(ast.walk(node), ast.Mult):
                words = ast.unparse(product)
                if "int32" in words or ("int64" not in words and _makes_row(product)):
                    yield product
                names = list_names(product.left) if node is address else ()
                factors += [
                    binding
                    for name in sorted(names)
                    for binding in flow.list_bindings(name)
                    if isinstance(binding, _MAKING) and any(map(_makes_row, flow.trace(binding)))
                ]
        rows = filter(_makes_row, made)
        yield from (row for row in (*factors, *rows) if "int64" not in ast.unparse(row))


_MAKING = (ast.Assign, ast.AugAssign, ast.AnnAssign)


def _makes_row(node: ast.AST) -> bool:
    """Return True if the code asks for the number of the program, or draws one by an atomic."""
    return any(
        isinstance(part, ast.Call) and name_call(part) in ("program_id", "atomic_add")
        for part in ast.walk(node)
    )


def _find_column_widths(flow: Flow) -> Iterator[ast.expr | ast.stmt]:
    """Yield the statement that makes the column number of the address; if that is a plain
    ``arange``, yield its product with the stride."""
    for node in (part for address in flow.address for part in ast.walk(address)):
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Mult)
            and "col" in ast.unparse(node.right)
        ):
            for name in list_names(node.left):
                yield from (
                    node if "arange" in ast.unparse(made) else made
                    for made in flow.list_bindings(name)
                )


# tensors with a number per row, whose loads have no lanes past the last column
_OF_ROWS = ("mean", "rstd", "lse", "dloss", "target", "lengths")


def _find_others(flow: Flow) -> Iterator[ast.expr]:
    """Yield masked loads of columns whose spare lanes are not what the others are: first those
    without ``other``, then those with another one than 0, or than -Inf where a load has that."""
    pointers = {flow.tensors[name] for name in _OF_ROWS if name in flow.tensors}
    loads = [
        call for call in flow.calls("load") if call.args and not pointers & list_names(call.args[0])
    ]
    for call in loads:
        if _find_argument(call, "mask") is not None and _find_argument(call, "other") is None:
            yield call
    others = [
        (call, ast.unparse(other))
        for call in loads
        if (other := _find_argument(call, "other")) is not None
    ]
    minus_inf = any("-inf" in words for _call, words in others)
    yield from (
        call
        for call, words in others
        if ("-inf" not in words if minus_inf else words not in ("0", "0.0"))
    )


def _find_unmasked_deviations(flow: Flow) -> Iterator[ast.expr]:
    """Yield differences, as in ``x - mean``, that no ``where`` masks: first those of what is
    loaded."""
    found = list(_list_unmasked_differences(flow))
    yield from sorted(found, key=lambda node: not _holds_a_load(flow, node.left))


def _holds_a_load(flow: Flow, node: ast.expr) -> bool:
    return any(
        isinstance(part, ast.Call) and name_call(part) == "load"
        for part in ast.walk(flow.resolve(node))
    )


def _list_unmasked_differences(flow: Flow) -> Iterator[ast.BinOp]:
    for node in flow.walk():
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)) or _is_constant(
            node.right
        ):
            continue
        masked = any(
            isinstance(a, ast.Call) and name_call(a) == "where" and node in a.args
            for a in flow.list_ancestors(node)
        )
        home = next((a for a in flow.list_ancestors(node) if isinstance(a, ast.stmt)), None)
        made = isinstance(home, (ast.Assign, ast.AugAssign))
        if not masked and made and "arange" not in ast.unparse(home):
            yield node


def _find_early_returns(flow: Flow) -> Iterator[ast.stmt]:
    for node in ast.walk(flow.function):
        if isinstance(node, ast.If) and any(isinstance(part, ast.Return) for part in node.body):
            yield node


def _find_clamped_addresses(flow: Flow) -> Iterator[ast.expr]:
    for statement in flow.trace(*flow.address):
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and name_call(node) in (
                "minimum",
                "min",
                "clamp",
                "maximum",
            ):
                yield node


def _is_odd(comparison: ast.Compare) -> bool:
    """Return True if one number is compared with another, but not as in ``cols < N`` or ``cols <
    lengths[:, None]``."""
    limit = comparison.comparators[0]
    while isinstance(limit, ast.Subscript):
        limit = limit.value
    if isinstance(comparison.ops[0], (ast.Eq, ast.NotEq)):  # a flag, and no limit
        return False
    return not (isinstance(limit, ast.Name) and isinstance(comparison.ops[0], ast.Lt))


def _find_odd_conditions(flow: Flow) -> Iterator[ast.stmt]:
    """Yield conditions of the access that compare a number with something else than a name."""
    for node in _find_conditions(flow):
        if any(isinstance(n, ast.Compare) and _is_odd(n) for n in ast.walk(node.test)):
            yield node


def _find_odd_store_loops(flow: Flow) -> Iterator[ast.stmt]:
    odd = list(_find_odd_loops(flow))
    yield from (loop for loop in _find_store_loop(flow) if loop in odd)


def _find_store_loop(flow: Flow) -> Iterator[ast.stmt]:
    if flow.access is not None:
        yield from (node for node in flow.list_ancestors(flow.access) if isinstance(node, ast.For))


def _find_mask(flow: Flow) -> Iterator[ast.stmt]:
    """Yield the statement that makes the mask of the access, if the mask has a name."""
    if isinstance(flow.mask, ast.Name):
        yield from flow.list_bindings(flow.mask.id)


def _find_odd_masks(flow: Flow) -> Iterator[ast.expr]:
    """Yield odd comparisons in masks."""
    for call in (*flow.calls("load"), *([flow.access] if flow.access is not None else [])):
        mask = _find_argument(call, "mask")
        mask = None if mask is None else flow.resolve(mask)
        for node in ast.walk(mask) if mask is not None else ():
            if isinstance(node, ast.Compare) and _is_odd(node):
                yield node


def _find_odd_loops(flow: Flow) -> Iterator[ast.stmt]:
    """Yield loops whose range ends at an expression, not at a name such as N or at a number of
    blocks, or begins at something else than 0 or ``start``."""
    for node in (n for n in ast.walk(flow.function) if isinstance(n, ast.For)):
        stops = node.iter.args if isinstance(node.iter, ast.Call) else []
        stop = stops[:2][-1] if stops else None
        if stop is not None and (
            not (
                isinstance(stop, ast.Name)
                or (isinstance(stop, ast.Call) and name_call(stop) == "cdiv")
            )
            or (len(stops) > 1 and ast.unparse(stops[0]) not in ("0", "start"))
        ):
            yield node


def _find_overwritten_accumulators(flow: Flow) -> Iterator[ast.stmt]:
    """Yield plain assignments in a loop that drop the old value of a name that was bound before the
    loop."""
    for statement in flow.statements:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            continue
        name = statement.targets[0].id
        in_loop = any(isinstance(node, ast.For) for node in flow.list_ancestors(statement))
        begun = any(
            s.lineno < statement.lineno
            and not any(isinstance(a, ast.For) for a in flow.list_ancestors(s))
            for s in flow.list_bindings(name)
        )
        if in_loop and begun and name not in list_names(statement.value):
            yield statement


def _find_accumulations(flow: Flow) -> Iterator[ast.stmt]:
    """Yield the augmented assignments to the names in the value: the steps by which its
    accumulators grow."""
    value = flow.value
    for name in dict.fromkeys(node.id for node in ast.walk(value) if isinstance(node, ast.Name)):
        yield from (s for s in flow.list_bindings(name) if isinstance(s, ast.AugAssign))


def _find_copies(flow: Flow) -> Iterator[ast.stmt]:
    """Yield assignments of one name to another, as in ``a = b``."""
    for statement in flow.statements:
        if (
            isinstance(statement, ast.Assign)
            and isinstance(statement.value, ast.Name)
            and isinstance(statement.targets[0], ast.Name)
        ):
            yield statement


def _list_sums(flow: Flow, of_products: bool) -> Iterator[ast.expr]:
    for call in flow.calls("sum", "mean"):
        is_function = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) in (
            "tl",
            "np",
            "torch",
        )
        operand = (
            call.args[0]
            if is_function and call.args
            else call.func.value
            if isinstance(call.func, ast.Attribute)
            else call
        )
        is_product = bool(_list_operations(ast.walk(operand), ast.Mult))
        if is_product == of_products:
            yield call


def _find_c1(flow: Flow) -> Iterator[ast.expr]:
    yield from _list_sums(flow, of_products=True)


def _find_c2(flow: Flow) -> Iterator[ast.expr]:
    yield from _list_sums(flow, of_products=False)


def _find_first_term(flow: Flow) -> Iterator[ast.stmt]:
    """Yield the statements that make the first term of dx: w * dy."""
    if flow.output != "dx":
        return
    for node in _list_operations(flow.walk(), ast.Sub)[::-1]:
        left: ast.expr = node
        while isinstance(left, ast.BinOp) and isinstance(left.op, ast.Sub):
            left = left.left
        if isinstance(left, ast.Name) and (bindings := flow.list_bindings(left.id)):
            yield from bindings
            return


def _find_xhat(flow: Flow) -> Iterator[ast.stmt]:
    """Yield the statements that make xhat: the factor of c1, or in dw the factor of dy."""
    for node in _list_operations(flow.walk(), ast.Mult)[::-1]:
        names = [
            part
            for side in (node.left, node.right)
            for part in ast.walk(side)
            if isinstance(part, ast.Name)
        ]
        sums = [name for name in names if _holds_a_sum(flow, flow.resolve(name))]
        others = [
            name
            for name in names
            if name not in sums and isinstance(flow.resolve(name), (ast.BinOp, ast.Call, ast.Name))
        ]
        if sums and others:
            yield from flow.list_bindings(others[0].id)
            return
    for call in flow.calls("sum"):
        for node in _list_operations(ast.walk(call), ast.Mult):
            if isinstance(node.right, ast.Name):
                bindings = flow.list_bindings(node.right.id)
                yield from (
                    made
                    for made in bindings
                    if not (isinstance(made, ast.Assign) and isinstance(made.value, ast.Tuple))
                )


def _find_conditions(flow: Flow) -> Iterator[ast.If]:
    if flow.access is not None:
        yield from (node for node in flow.list_ancestors(flow.access) if isinstance(node, ast.If))


def _find_loads_of(*tensors: str) -> Rule:
    return lambda flow: (call for tensor in tensors for call in flow.find_loads(tensor))


def _find_second_load_of(tensor: str) -> Rule:
    def rule(flow: Flow) -> Iterator[ast.expr]:
        yield from list(flow.find_loads(tensor))[1:]

    return rule


def _find_loads_without(flow: Flow) -> Iterator[ast.expr]:
    """Yield loads from an address that does not depend on the program number."""
    for call in flow.calls("load"):
        if call.args and not any(
            "program_id" in ast.unparse(statement) for statement in flow.trace(call.args[0])
        ):
            yield call


def _find_addresses_without(flow: Flow) -> Iterator[ast.stmt]:
    for address in flow.address:
        feeding = flow.trace(address)
        if feeding and not any("program_id" in ast.unparse(statement) for statement in feeding):
            yield feeding[-1]


def _find_lanes_without_start(flow: Flow) -> Iterator[ast.expr]:
    for call in flow.calls("arange"):
        if not isinstance(flow.parents.get(call), ast.BinOp) and any(
            isinstance(a, ast.For) for a in flow.list_ancestors(call)
        ):
            yield call


def _find_weak_atomics(flow: Flow) -> Iterator[ast.expr]:
    """Yield what gives a lock back or waits for it with too weak an order: an atomic behind the
    last store that does not release, the condition of a wait that does not acquire, and atomics
    whose scope is one block."""
    calls = [node for node in ast.walk(flow.function) if isinstance(node, ast.Call)]
    stored = max((c.lineno for c in calls if name_call(c) == "store"), default=0)
    waits = [node.test for node in ast.walk(flow.function) if isinstance(node, ast.While)]
    asked = [part for wait in waits for part in ast.walk(wait) if isinstance(part, ast.Call)]
    for call in calls:
        order, scope = (_read_word(call, name) for name in ("sem", "scope"))
        atomic = (name_call(call) or "").startswith("atomic_")
        if (
            (atomic and scope == "cta")
            or (atomic and call.lineno > stored > 0 and order in ("relaxed", "acquire"))
            or (call in asked and (order in ("relaxed", "release") or name_call(call) == "load"))
        ):
            yield call


def _read_word(call: ast.Call, name: str) -> str:
    argument = _find_argument(call, name)
    return str(argument.value) if isinstance(argument, ast.Constant) else ""


def _find_calls(*names: str) -> Rule:
    return lambda flow: flow.calls(*names)


def _find_writing(flow: Flow) -> Iterator[ast.expr]:
    """Yield the store, or the value that is returned."""
    yield flow.access or flow.value


def _find_formula(flow: Flow) -> Iterator[ast.expr | ast.stmt]:
    """Yield the formula of the output: the one assignment that makes it, or the store or the
    returned value that holds it."""
    value = places.strip_casts(flow.value)
    if not isinstance(value, ast.Name):
        yield from _find_writing(flow)
    else:
        match flow.list_bindings(value.id):
            case [ast.Assign(targets=[ast.Name()]) as made] if not isinstance(made.value, ast.Name):
                yield made


_MASKS = (_find_others, _find_odd_masks)
_OF_WRITING = ("gradient_dtype", "needs_misread", "outputs_swapped", "wrong_statistic_saved")
# Causes whose mistake is in a term of the output's own formula
_OF_FORMULA = """b_ignored w_ignored b_misapplied w_misapplied w_and_b_swapped std_for_var rstd_for_var variance_turned negative_variance mean_for_sum
    not_divided rstd_not_applied projection_missing c1_missing c2_missing c1_and_c2_swapped sign_of_c1_or_c2 rstd_in_dx dw_sums_columns
    w_outside_means c2_times_xhat sign_of_dx c2_in_rms_norm product_of_sums""".split()  # noqa: E501
# The rules of each cause, the likelier first
_RULES: dict[str, tuple[Rule, ...]] = {
    "divisor": (_find_divisors,),
    "vjp_divisor": (_find_divisors,),
    "unbiased_variance": (_find_divisors,),
    "wrong_axis": (_find_other_axes,),
    "eps_missing": (_find_roots,),
    "eps_hard_coded": (_find_fixed_eps, _find_roots),
    "eps_not_kept": (_find_fixed_eps,),
    "eps_outside": (_find_eps,),
    "eps_altered": (_find_eps,),
    "root_missing": (_find_eps,),
    "reciprocal_missing": (_find_roots,),
    "max_for_sum": (_find_calls("max"),),
    "deviation_not_squared": (_find_calls("abs"),),
    "mean_subtracted": (_find_calls("var", "std"), _find_unmasked_deviations),
    "squared_after_the_sum": (_find_variance,),
    "w_before_the_norm": (_find_variance,),
    "norm_before_addition": (_find_variance,),
    "cancellation": (_find_variance,),
    "merge_between": (_find_variance,),
    "M2_not_a_sum": (_find_variance,),
    "M2s_left_out": (_find_variance,),
    "variance_terms": (_find_variance,),
    "recomputed_statistics": (_find_calls("rsqrt", "std", "var"),),
    "bad_row_swallowed": (_find_swallowing,),
    "special_values": (_find_swallowing,),
    "low_precision": (_find_half_casts, _find_unwidened, _find_squares_as_given),
    "rounded_on_the_way": (_find_half_casts,),
    "another_dtype": (_find_casts_of_others,),
    "offset_32_bit": (_find_widths,),
    "column_offset_32_bit": (_find_column_widths,),
    "mask_missing": _MASKS,
    "masked_off": (_find_others,),
    "padding_in_variance": (_find_unmasked_deviations,),
    "padding_in_c1": (_find_others,),
    "partly_written": (
        _find_early_returns,
        _find_odd_conditions,
        _find_odd_store_loops,
        _find_clamped_addresses,
        _find_odd_masks,
    ),
    "row_mask": (_find_others, _find_mask),
    "only_one_block": (_find_odd_loops, _find_lanes_without_start),
    "tail_left_out": (_find_odd_loops, _find_odd_masks),
    "elements_skipped": (_find_odd_loops, _find_odd_masks),
    "rows_left_out": (_find_odd_loops, _find_odd_masks),
    "chunk_left_out": (_find_odd_masks,),
    "block_not_accumulated": (_find_overwritten_accumulators,),
    "rows_not_summed": (_find_overwritten_accumulators,),
    "accumulator_reused": (_find_copies,),
    "c1_of_dy": (_find_c1,),
    "c2_of_dy": (_find_c2,),
    "dy_ignored": (_find_calls("ones_like"), _find_first_term),
    "w_missing_in_dx": (_find_first_term,),
    "w_twice": (_find_first_term,),
    "xhat_wrong": (_find_accumulations, _find_xhat),
    "dw_without_xhat": (_find_accumulations,),
    "xhat_in_db": (_find_accumulations,),
    "rstd_in_db": (_find_accumulations,),
    "w_in_dw": (_find_accumulations,),
    "sign_of_dw_or_db": (_find_accumulations,),
    "dx_for_dy": (_find_accumulations,),
    "not_a_plain_sum": (_find_accumulations,),
    "counted_by_every_lane": (_find_accumulations,),
    "welford_count": (_find_accumulations,),
    "rstd_misread": (_find_loads_of("rstd"),),
    "statistic_misread": (_find_loads_of("mean"),),
    "statistics_of_another_row": (_find_loads_of("mean", "rstd"),),
    "w_for_b": (_find_second_load_of("w"),),
    "same_row": (_find_loads_without,),
    "same_block": (_find_lanes_without_start,),
    "another_block": (_find_lanes_without_start,),
    "programs_overlap": (_find_addresses_without, _find_store_loop),
    "uninitialised": (_find_conditions,),
    "race": (_find_weak_atomics,),
    **dict.fromkeys(_OF_WRITING, (_find_writing,)),
    **dict.fromkeys(_OF_FORMULA, (_find_formula,)),
}


def find_slip(cause: str, flow: Flow) -> ast.expr | ast.stmt | None:
    """Find the code that ``cause`` is about, among the code that feeds a wrong output. Return None
    if no rule finds any."""
    return next((node for rule in _RULES.get(cause, ()) for node in rule(flow)), None)

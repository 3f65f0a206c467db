"""The meaning that Triton's compiler gives to the Python of a kernel. :mod:`rewriting` puts calls
of these functions into the kernel.

A compiler does not run the text of a kernel as Python. ``and`` of two blocks is elementwise, a loop
variable is a tensor, an assignment makes a number a tensor, ``a < b < c`` is refused. Numbers that
the compiler knows (its ``constexpr``) are plain Python numbers here, as everywhere in the
interpreter.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Generator, Iterator
from types import GeneratorType
from typing import Any, NoReturn

import numpy as np
import triton.language as tl
from triton.language.core import base_value, constexpr, tensor
from triton.runtime import interpreter

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.base.words import list_words

# kept here, because a launch replaces them
_Range, _StaticRange = tl.core.range, tl.core.static_range
_min, _max = (
    getattr(tl.core, f"builtin_{name}", getattr(tl.core, f"{name}imum")) for name in ("min", "max")
)
_Condition = getattr(tl, "condition", ())  # Triton 3.6 does not have it
_semantic: Any = interpreter.interpreter_semantic


class NotTriton(TypeError):
    """Raised for code that Triton's compiler refuses, and to which Python gives another meaning."""


class NotInCpuMode(NotImplementedError):
    """Raised for code that a GPU runs and the interpreter cannot run."""


def unwrap(value: Any) -> Any:
    return value.value if isinstance(value, constexpr) else value


def refuse(words: str) -> NoReturn:
    """Raise NotTriton with ``words``."""
    raise NotTriton(words)


def is_block(value: Any) -> bool:
    """Return True for a tensor of more than one element."""
    return isinstance(value, tensor) and bool(value.shape) and value.handle.data.size != 1


# ---- assignments ---------------------------------------------------------------------------------


def assign(value: Any) -> Any:
    """Return what ``name`` holds after ``name = value``: a number becomes a tensor, of int32 or
    fp32 or of a wider type."""
    if isinstance(value, tensor):
        return value
    if isinstance(value, tuple):
        items = [assign(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, tl.tuple):
        kind: Any = value.type
        return tl.tuple([assign(item) for item in value.values], kind)
    value = unwrap(value)
    return _semantic.to_tensor(value) if isinstance(value, (bool, int, float)) else value


def assign_as(annotation: Any, value: Any) -> Any:
    """Return what ``name`` holds after ``name: annotation = value``; with ``tl.constexpr`` a number
    stays a number."""
    return (
        unwrap(value) if annotation is constexpr or annotation == "tl.constexpr" else assign(value)
    )


def unpack(value: Any, count: int) -> tuple:
    """Return the values for ``count`` names on the left side of an assignment: the first ones of a
    tuple."""
    if not isinstance(value, (tuple, tl.tuple)):
        refuse(_("a block or a number stands where a tuple is taken apart; only tuples can be"))
    items = tuple(value)
    if len(items) < count:
        refuse(
            _("a tuple of {length} is taken apart into {count} names").format(
                length=len(items), count=count
            )
        )
    return items[:count]


def value_of(owner: Any) -> Any:
    """Return ``owner.value``; for a number that the compiler knows, this is the number itself."""
    return owner if isinstance(owner, (bool, int, float, str, type(None))) else owner.value


# ---- truth ---------------------------------------------------------------------------------------

_CONDITIONS = (bool, int, type(None))


def condition(value: Any) -> bool:
    """Return the truth of ``value`` in ``if``, ``while`` or ``a if value else b``."""
    if isinstance(value, _Condition):
        value = value.condition
    if isinstance(value, tensor):
        if is_block(value):
            refuse(
                _(
                    "the condition of `if` or `while` is a block, which has no one truth value;"
                    " tl.where(condition, a, b) chooses lane by lane"
                )
            )
        return bool(value.handle.data.item())
    value = unwrap(value)
    if type(value) not in _CONDITIONS:
        words = _(
            "the condition of `if` is a {kind}; Triton takes a tensor of one element, a bool or"
            " an int"
        )
        refuse(words.format(kind=type(value).__name__))
    return bool(value)


def still(value: Any) -> bool:
    """Return True if ``while value`` takes another turn."""
    if isinstance(unwrap(value), (bool, int, float, type(None))):
        refuse(
            _(
                "the condition of `while` is a number that the compiler knows; Triton takes a"
                " tensor, which the loop changes"
            )
        )
    return condition(value)


def returned(value: Any, *tests: Any) -> Any:
    """Return the value of ``return value``. If one of the ``tests`` around it is a tensor, a number
    becomes a tensor as well."""
    return assign(value) if any(isinstance(test, tensor) for test in tests) else value


def logical(is_and: bool, *operands: Callable[[], Any]) -> Any:
    """Compute ``a and b`` or ``a or b`` elementwise. Unlike in Python, every operand that is a
    tensor is evaluated."""
    tensors, value = [], None
    for operand in operands:
        value = operand()
        if isinstance(value, tensor):
            tensors.append(value)
        elif bool(value) is not is_and:
            return value
    if not tensors:
        return value
    combine = _semantic.logical_and if is_and else _semantic.logical_or
    result = tensors.pop()
    while tensors:
        result = combine(tensors.pop(), result)
    return result


def negate(value: Any) -> Any:
    """Compute ``not value``, elementwise for a tensor."""
    return _semantic.not_(value) if isinstance(value, tensor) else not value


def choose(value: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """Compute ``then if value else otherwise``. If the condition is a tensor, the result is one,
    too."""
    branch = then if condition(value) else otherwise
    return _semantic.to_tensor(branch()) if isinstance(value, tensor) else branch()


def is_same(left: Any, right: Any) -> bool:
    """Compute ``left is right``.

    Two values of a kernel are one object or two by how the compiler, or the interpreter, keeps
    them.
    """
    left, right = unwrap(left), unwrap(right)
    if all(isinstance(v, _WITHOUT_IDENTITY) and not isinstance(v, bool) for v in (left, right)):
        refuse(
            _(
                "`is` asks whether two values are one object, and in a kernel that says nothing"
                " about them; compare with =="
            )
        )
    return left is right


_WITHOUT_IDENTITY = (int, float, tuple, base_value)


# ---- loops ---------------------------------------------------------------------------------------


def loop(iterator: Any, *arguments: Any, **named: Any) -> Iterator[Any]:
    """Yield the values of ``for name in iterator(*arguments)``: integer tensors, or numbers with
    tl.static_range."""
    if iterator in (builtins.range, *_RANGES):
        bounds = _Range(*arguments, **named)
        return typed_range(bounds.start, bounds.end, bounds.step)
    if iterator in _STATIC_RANGES:
        return iter(static_range(*arguments, **named))
    return refuse(
        _(
            "a `for` loop in a kernel goes over range, tl.range or tl.static_range, and over"
            " nothing else"
        )
    )


def typed_range(start: Any, end: Any, step: Any) -> Iterator[tensor]:
    """Yield integer tensors of the common type of start, end and step: int64 if one of them is
    int64, else int32."""
    backwards = not isinstance(step, tensor) and unwrap(step) < 0
    if backwards:
        start, end, step = end, start, -unwrap(step)
    bounds = [_semantic.to_tensor(bound) for bound in (start, end, step)]
    if any(is_block(bound) for bound in bounds):
        refuse(_("start, end and step of range are single integers, and one of them is a block"))
    kinds = [bound.dtype for bound in bounds]
    if not all(kind.is_int() for kind in kinds):
        refuse(
            _("start, end and step of range are integers, not {kinds}").format(
                kinds=list_words(kinds)
            )
        )
    kind = _semantic.integer_promote_impl(
        _semantic.integer_promote_impl(kinds[0], kinds[1]), kinds[2]
    )
    number = interpreter._get_np_dtype(kind)
    signed = (
        np.dtype(f"int{kind.primitive_bitwidth}")
        if kind.primitive_bitwidth > 1
        else np.dtype(np.int8)
    )
    low, high, pace = (
        int(bound.handle.data.astype(number).view(signed).item()) for bound in bounds
    )
    if low < high and pace <= 0:
        words = _(
            "the step of range is {step} when the kernel runs; Triton runs a loop upwards unless"
            " the step is a negative constant"
        )
        refuse(words.format(step=pace))
    for at in builtins.range(low, high, max(pace, 1)):
        value = high - at + low if backwards else at
        yield tensor(interpreter.TensorHandle(np.array([value], signed).view(number), kind), kind)


def static_range(*arguments: Any, **named: Any) -> range:
    """Return the numbers of ``tl.static_range``, which the compiler knows."""
    if any(isinstance(value, tensor) for value in (*arguments, *named.values())):
        refuse(
            _(
                "tl.static_range is unrolled by the compiler: its bounds are constexpr, not values"
                " that a kernel has when it runs"
            )
        )
    bounds = _StaticRange(
        *map(constexpr, arguments), **{name: constexpr(value) for name, value in named.items()}
    )
    return builtins.range(
        *(int(unwrap(bound)) for bound in (bounds.start, bounds.end, bounds.step))
    )


def runtime_range(*arguments: Any, **named: Any) -> Iterator[tensor]:
    """Yield the integer tensors of ``tl.range``."""
    bounds = _Range(*arguments, **named)
    return typed_range(bounds.start, bounds.end, bounds.step)


_RANGES, _STATIC_RANGES = (_Range, runtime_range), (_StaticRange, static_range)


# ---- Python's own functions ----------------------------------------------------------------------


def smallest(*values: Any, **named: Any) -> Any:
    """Compute ``min(...)``: a number if the compiler knows all values, and elementwise if one of
    them is a tensor."""
    return unwrap(_min(*values, **named, _semantic=_semantic))


def largest(*values: Any, **named: Any) -> Any:
    """Compute ``max(...)``, as :func:`smallest` computes ``min(...)``."""
    return unwrap(_max(*values, **named, _semantic=_semantic))


def as_int(value: Any = 0, *rest: Any) -> int:
    """Compute ``int(value)`` of a number that the compiler knows."""
    if isinstance(value, tensor):
        refuse(_("int() of a tensor; write x.to(tl.int32)"))
    return builtins.int(unwrap(value), *rest)


def as_float(value: Any = 0.0) -> float:
    """Compute ``float(value)`` of a number that the compiler knows."""
    if isinstance(value, tensor):
        refuse(_("float() of a tensor; write x.to(tl.float32)"))
    return builtins.float(unwrap(value))


def is_instance(value: Any, kind: Any) -> bool:
    """Compute ``isinstance(value, kind)``: the compiler has the number of a constexpr, and a tuple
    of its own."""
    value = unwrap(value)
    if isinstance(value, tuple):
        value = as_constants(value)
    return isinstance(value, kind)


FUNCTIONS = {
    "min": smallest,
    "max": largest,
    "int": as_int,
    "float": as_float,
    "isinstance": is_instance,
}
# Replacements for functions that the compiler does not know, for messages.
_UNKNOWN = {
    "abs": "tl.abs", "all": "tl.min", "any": "tl.max", "bool": "x != 0",
    "divmod": N_("x // y and x % y"), "pow": N_("tl.exp2 or products"),
    "round": "tl.floor(x + 0.5)", "sum": "tl.sum", "sorted": "tl.sort",
    "enumerate": "tl.static_range", "zip": "tl.static_range",
    "reversed": "tl.static_range", "map": "tl.static_range", "filter": "tl.where",
    "str": N_("a constexpr"), "tuple": "(a, b)",
    "set": "(a, b)", "dict": "(a, b)", "type": "x.dtype", "next": "tl.static_range",
    "iter": "tl.static_range",
}  # fmt: skip
UNKNOWN_FUNCTIONS = frozenset(_UNKNOWN)


def unknown(name: str) -> NoReturn:
    """Raise NameError for a function of Python that Triton does not have."""
    words = _(
        "{name} is not defined in a Triton kernel; write {replacement} in place of Python's {name}"
    )
    raise NameError(words.format(name=name, replacement=_(_UNKNOWN[name])))


# ---- functions of constants ----------------------------------------------------------------------


def as_constants(value: Any) -> Any:
    """Return a tuple as the compiler has it; anything else as it is.

    Raises: NotTriton for a function of the language: the interpreter has others.
    """
    if callable(unwrap(value)) and not isinstance(value, type):  # a constexpr has __call__
        refuse(_("a function of Triton's language is called, and handed to no other function"))
    if not isinstance(value, (tuple, list)):
        return value
    items = [as_constants(item) for item in value]
    return tl.tuple([i if isinstance(i, (base_value, tl.dtype)) else constexpr(i) for i in items])


def calculate_with_constants() -> None:
    """Give a ``@triton.constexpr_function`` the arguments that the compiler gives it.

    Raises: AttributeError if this Triton has no such functions.
    """
    from triton.runtime.jit import ConstexprFunction

    stock = ConstexprFunction.__call__
    running: list[Any] = []  # such functions, of which one may call another

    def __call__(self: Any, *arguments: Any, **named: Any) -> Any:
        if not running:
            if any(isinstance(value, tensor) for value in (*arguments, *named.values())):
                refuse(
                    _(
                        "a function under @triton.constexpr_function runs while a kernel is"
                        " compiled: give it constants, and no values that a kernel has when it runs"
                    )
                )
            arguments = tuple(map(as_constants, arguments))
            named = {name: as_constants(value) for name, value in named.items()}
        running.append(self)
        try:
            return stock(self, *arguments, **named)
        finally:
            running.pop()

    setattr(ConstexprFunction, "__call__", __call__)  # noqa: B010 - a type checker refuses the other form


# ---- numbers that the compiler knows, met by tensors ---------------------------------------------

_REFLECTED = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
    "pow",
)
_COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")


def let_constexprs_meet_tensors() -> None:
    """Make ``constexpr + tensor`` call the addition of the tensor, and give a constexpr the
    operators for its right side that it lacks.

    Shapes and global constants are still constexpr objects in the interpreter.

    Raises: AttributeError if this Triton's constexpr has not the operators.
    """

    def yield_to_tensors(stock: Callable) -> Callable:
        return lambda self, other: (
            NotImplemented if isinstance(other, tensor) else stock(self, other)
        )

    def swap(apply: Callable) -> Callable:
        return lambda self, other: (
            NotImplemented
            if isinstance(other, base_value)
            else constexpr(apply(unwrap(other), self.value))
        )

    for name in (*_REFLECTED, *_COMPARED):
        method = f"__{name}__"
        setattr(constexpr, method, yield_to_tensors(getattr(constexpr, method)))
    for name in _REFLECTED:
        method = f"__r{name}__"
        if not hasattr(constexpr, method):
            apply = getattr(operator, f"__{name}__")
            setattr(constexpr, method, swap(apply))
        else:
            setattr(constexpr, method, yield_to_tensors(getattr(constexpr, method)))


# ---- programs that pause -------------------------------------------------------------------------


def pause(
    make_pausing: Callable,
    uses_memory: bool,
    drops_result: bool,
    function: Any,
    *arguments: Any,
    **named: Any,
) -> Generator[bool, None, Any]:
    """Call ``function`` from a pausing kernel. If it is a memory operation, yield first, and say
    whether the kernel drops its result.

    A jitted helper runs in the form that ``make_pausing`` gives it, so that it pauses, too.
    """
    if isinstance(function, interpreter.InterpretedFunction):
        interpreter._patch_lang(function.fn)
        try:
            return (yield from make_pausing(function.fn)(*arguments, **named))
        except Exception as error:
            raise interpreter.InterpreterError(repr(error)) from error
    if uses_memory:
        yield drops_result
    return function(*arguments, **named)


def pause_logical(is_and: bool, *operands: Callable[[], Any]) -> Generator[bool, None, Any]:
    """Compute what :func:`logical` computes, where an operand may pause."""
    values = []
    for operand in operands:
        values.append((yield from _finish(operand())))
        if not isinstance(values[-1], tensor) and bool(values[-1]) is not is_and:
            break
    return logical(is_and, *(lambda value=value: value for value in values))


def pause_choose(
    value: Any, then: Callable[[], Any], otherwise: Callable[[], Any]
) -> Generator[bool, None, Any]:
    """Compute what :func:`choose` computes, where ``then`` or ``otherwise`` may pause."""
    result = yield from _finish((then if condition(value) else otherwise)())
    return choose(value, lambda: result, lambda: result)


def _finish(value: Any) -> Generator[bool, None, Any]:
    """Run the generator of an operand that may pause, and return its result; return any other
    value."""
    return (yield from value) if isinstance(value, GeneratorType) else value

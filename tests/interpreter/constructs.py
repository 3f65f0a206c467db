"""Constructs of Triton's language, and of the Python that its frontend takes: what each means,
written down here.

A construct is a piece of a kernel that makes ``result``. ``want`` is the value by the language's
own rules, not by a run of anything; ``dtype`` is what the compiler has to find, too. A piece may
use these blocks of 8 lanes and these arguments:
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

INF, NAN = math.inf, math.nan
# name in a piece: dtype, and the 8 numbers
BLOCKS: dict[str, tuple[str, list]] = {
    "i8": ("int8", [7, -7, 127, -128, 0, 1, -1, 12]),
    "i16": ("int16", [7, -7, 32767, -32768, 0, 1, -1, 12]),
    "i32": ("int32", [7, -7, 2**31 - 1, -(2**31), 0, 1, -1, 12]),
    "i64": ("int64", [7, -7, 2**63 - 1, -(2**63), 2**40, 1, -1, 12]),
    "u8": ("uint8", [7, 249, 255, 128, 0, 1, 254, 12]),
    "u16": ("uint16", [7, 65529, 65535, 32768, 0, 1, 65534, 12]),
    "u32": ("uint32", [7, 2**32 - 7, 2**32 - 1, 2**31, 0, 1, 2, 12]),
    "u64": ("uint64", [7, 2**64 - 7, 2**64 - 1, 2**63, 0, 1, 2, 12]),
    "f16": ("float16", [1.0, -2.5, 0.0, 1000.0, 0.25, -0.5, 3.0, 7.0]),
    "bf16": ("bfloat16", [1.0, -2.5, 0.0, 1024.0, 0.25, -0.5, 3.0, 7.0]),
    "f32": ("float32", [1.0, -2.5, 0.0, 1000.0, 0.25, -0.5, 3.0, 7.0]),
    "f64": ("float64", [1.0, -2.5, 0.0, 1000.0, 0.25, -0.5, 3.0, 7.0]),
    "odd32": ("float32", [NAN, INF, -INF, -0.0, 1.0, NAN, 2.0, -3.0]),
    "two": ("int32", [2, 2, 2, 2, 2, 2, 2, 2]),
    "by": ("int32", [2, 2, 3, 3, -5, 7, 2, -5]),
    "shift": ("int32", [0, 1, 2, 3, 4, 5, 6, 31]),
    "perm": ("int32", [3, 1, 0, 2, 7, 6, 5, 4]),
    "small": ("int32", [0, 1, 1, 3, 3, 3, 2, 0]),
}
# name in a piece: what the launch passes
ARGUMENTS: dict[str, Any] = {"n": 5, "neg": -7, "big": 2**40, "eps": 0.1, "flag": True, "half": 0.5}
TRITON = {"bool": "int1", "bfloat16": "bfloat16"}  # a dtype's name here, where Triton's is another
SHORT = {
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
}  # fmt: skip
BITS = {name: int(re.sub(r"\D", "", name)) for name in SHORT}


@dataclass(frozen=True)
class Construct:
    """``want``: a number, or a list for a block; None where the compiler refuses the piece. ``cpu``
    says what CPU mode does:

    "same": what the compiler does. "words": it cannot run it, and says so. "runs": it runs what the
    compiler refuses; a grader asks the compiler, too. ``near``: the relative error that a GPU's
    approximation may have.
    """

    name: str
    body: str
    want: Any
    dtype: str = "int32"
    cpu: str = "same"
    near: float = 0.0
    helpers: str = ""
    words: str = ""
    stores: bool = False  # the body stores to out_ptr itself; want is all that is there
    # pointers to further memory: name, dtype, numbers
    extra: dict[str, tuple[str, list]] = field(default_factory=dict)
    since: tuple[int, int] = (3, 6)  # the Triton whose compiler means this
    only: str = ""  # "hopper": needs a GPU of that age to be compiled and run

    @property
    def refused(self) -> bool:
        return self.want is None and self.cpu != "words"

    @property
    def text(self) -> str:
        """What names are looked for in."""
        return f"{self.helpers}\n{self.body}"

    def blocks(self) -> dict[str, tuple[str, list]]:
        return {
            name: block for name, block in BLOCKS.items() if re.search(rf"\b{name}\b", self.body)
        }

    def arguments(self) -> dict[str, Any]:
        return {
            name: value for name, value in ARGUMENTS.items() if re.search(rf"\b{name}\b", self.body)
        }

    def source(self, name: str) -> str:
        """The text of a kernel ``name`` and its helpers."""
        pointers = [f"{block}_ptr" for block in self.blocks()] + list(self.extra)
        parameters = ["out_ptr", *pointers, *self.arguments()]
        lines = (
            ["lanes = tl.arange(0, 8)"]
            if re.search(r"\blanes\b", self.body) or self.blocks()
            else []
        )
        lines += [f"{block} = tl.load({block}_ptr + lanes)" for block in self.blocks()]
        lines += self.body.splitlines()
        if not self.stores and self.want is not None:
            kind = TRITON.get(self.dtype, self.dtype)
            lines.append(f"tl.static_assert(result.dtype == tl.{kind}, 'the dtype is another')")
            value = "result.to(tl.int8)" if self.dtype == "bool" else "result"
            if isinstance(self.want, list):
                count = len(self.want)
                lines.append(
                    f"tl.store(out_ptr + tl.arange(0, {count}), tl.reshape({value}, [{count}]))"
                )
            else:
                lines.append(f"tl.store(out_ptr, {value})")
        helpers = self.helpers.replace("@jit", "@triton.jit")
        body = "".join(f"    {line}\n" for line in lines)
        return (
            f"{helpers}\n\n@triton.jit\ndef {name}({', '.join(parameters)}, K:"
            f" tl.constexpr):\n{body}\n"
        )


def wrap(value: int, dtype: str) -> int:
    """An integer as ``dtype`` stores it."""
    bits = BITS[dtype]
    value %= 2**bits
    return value - 2**bits if not dtype.startswith("u") and value >= 2 ** (bits - 1) else value


def by_c(a: int, b: int) -> tuple[int, int]:
    """Quotient and remainder of C: cut toward zero, the remainder has a's sign."""
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient, a - quotient * b


def values(name: str) -> list:
    return BLOCKS[name][1]


I32, F32, BY = values("i32"), values("f32"), values("by")


def _loops() -> Iterator[Construct]:
    yield Construct(
        "range: a tensor",
        "result = lanes * 0\nfor i in range(n):\n    result += i.to(tl.int32)",
        [10] * 8,
    )
    yield Construct(
        "range: int32",
        "for i in range(n):\n    tl.static_assert(i.dtype == tl.int32)\nresult = n",
        5,
    )
    yield Construct(
        "range: to int64",
        "result = tl.full([], 0, tl.int64)\nfor i in range(2, n):\n    result += i.to(tl.int64)",
        9,
        "int64",
    )
    yield Construct(
        "range: a bound of 64 bits",
        "result = big * 0\nfor i in range(big, big + 3):\n    result += i",
        3 * 2**40 + 3,
        "int64",
    )
    yield Construct(
        "range: i * i wraps in 32 bits",
        "result = n * 0\nfor i in range(65537, 65538):\n    result = i * i",
        131073,
    )
    yield Construct(
        "range: i * i in 64 bits",
        "result = big * 0\nfor i in range(big - big + 65537, 65538):\n    result = i * i",
        65537**2,
        "int64",
    )
    yield Construct(
        "range: backwards",
        "result = n * 0\nfor i in range(n, 0, -2):\n    result = result * 10 + i",
        531,
    )
    yield Construct(
        "range: backwards, constants",
        "result = n * 0\nfor i in range(9, 2, -3):\n    result = result * 10 + i",
        963,
    )
    yield Construct("range: no turn", "result = n\nfor i in range(n, 2):\n    result = i", 5)
    yield Construct(
        "range: a step of its own",
        "result = n * 0\nfor i in range(0, n + 6, n - 1):\n    result = result * 10 + i",
        48,
    )
    yield Construct(
        "range: a step of 8 bits",
        "result = n * 0\nfor i in range(0, n, tl.full([], 2, tl.int8)):\n    result += i",
        6,
    )
    yield Construct(
        "range: of a float", "result = n\nfor i in range(0, 2.5):\n    result = i", None
    )
    yield Construct(
        "range: C's remainder of the loop variable",
        "result = n\nfor i in range(-7, -6):\n    result = i % 4",
        -3,
    )
    yield Construct(
        "range: C's quotient of the loop variable",
        "result = n\nfor i in range(-7, -6):\n    result = i // 2",
        -3,
    )
    yield Construct(
        "range: true division",
        "result = eps\nfor i in range(7, 8):\n    result = i / 2",
        3.5,
        "float32",
    )
    yield Construct(
        "tl.range",
        "result = n * 0\nfor i in tl.range(0, n, 2, num_stages=2):\n    result = result * 10 +"
        " i.to(tl.int32)",
        24,
    )
    yield Construct(
        "tl.range: its options",
        "result = n * 0\nfor i in tl.range(n, loop_unroll_factor=2, flatten=True):\n    result"
        " += i",
        10,
    )
    yield Construct(
        "tl.static_range: numbers",
        "result = lanes * 0\nfor i in tl.static_range(1, 4):\n    result += tl.full([8], i,"
        " tl.int32) * 2",
        [12] * 8,
    )
    yield Construct(
        "tl.static_range: backwards",
        "result = n\nfor i in tl.static_range(4, 0, -2):\n    result = result * 10 + i",
        542,
    )
    yield Construct(
        "tl.static_range: a step by name",
        "result = n\nfor i in tl.static_range(0, 4, step=2):\n    result += i",
        7,
    )
    yield Construct(
        "tl.static_range: indexes a tuple",
        "t = (3, n, 4)\nresult = n\nfor i in tl.static_range(3):\n    result = result * 10 + t[i]",
        5354,
    )
    yield Construct(
        "tl.static_range: of a tensor",
        "result = n\nfor i in tl.static_range(n):\n    result += i",
        None,
    )
    yield Construct("while", "result = n\nwhile result < 100:\n    result *= 2", 160)
    yield Construct(
        "while: a mask of one",
        "result = n\nwhile (result < 100) & (result > 0):\n    result *= 2",
        160,
    )
    yield Construct(
        "while: and", "result = n\nwhile result < 100 and result > 0:\n    result *= 2", 160
    )
    yield Construct(
        "while: a constant",
        "result = n\nwhile True:\n    result += 1",
        None,
        words="the compiler knows",
    )
    yield Construct(
        "while: a block", "result = i32\nwhile result < 100:\n    result += 1", None, words="block"
    )
    yield Construct(
        "for: a tuple", "result = n\nfor i in (1, 2):\n    result += i", None, words="nothing else"
    )
    yield Construct("break", "result = n\nfor i in range(3):\n    break", None, cpu="runs")
    yield Construct("continue", "result = n\nfor i in range(3):\n    continue", None, cpu="runs")
    yield Construct(
        "nested loops",
        "result = n * 0\nfor i in range(3):\n    for j in range(i):\n        result += i * 10 + j",
        51,
    )


def _truth() -> Iterator[Construct]:
    low = [c >= 2 for c in range(8)]
    high = [c < 5 for c in range(8)]
    both = [a and b for a, b in zip(low, high, strict=True)]
    yield Construct("and of blocks", "result = lanes >= 2 and lanes < n", both, "bool")
    yield Construct(
        "or of blocks", "result = lanes < 2 or lanes >= n", [not b for b in both], "bool"
    )
    yield Construct(
        "and of three",
        "result = lanes >= 2 and lanes < n and lanes != 3",
        [b and c != 3 for c, b in enumerate(both)],
        "bool",
    )
    yield Construct(
        "and, or, not of blocks",
        "result = not (lanes >= 2 and lanes < n) or lanes == 3",
        [not b or c == 3 for c, b in enumerate(both)],
        "bool",
    )
    yield Construct(
        "not of a block", "result = not (lanes < 3)", [c >= 3 for c in range(8)], "bool"
    )
    yield Construct("not of a number", "result = not K", False, "bool")
    yield Construct("not of one element", "result = not (n < 3)", True, "bool")
    yield Construct(
        "and with a mask in a load",
        "result = tl.load(out_ptr + lanes, mask=lanes >= 8 and lanes < 9, other=4)",
        [4] * 8,
    )
    yield Construct("and with a constant", "result = (lanes < n) and True", high, "bool")
    yield Construct("and with a false constant", "result = (lanes < n) and False", False, "bool")
    yield Construct(
        "or with a true constant", "tl.static_assert(((lanes < n) or 3) == 3)\nresult = n", 5
    )
    yield Construct(
        "and of constants is the last", "tl.static_assert((K and 3) == 3)\nresult = n", 5
    )
    yield Construct("and of integers", "result = n and neg", None)
    yield Construct("not of an integer tensor", "result = not n", None)
    yield Construct("chained comparison", "result = 0 <= lanes < n", None, words="more than two")
    yield Construct(
        "chained comparison of numbers", "result = 0 < K < 9", None, words="more than two"
    )
    yield Construct(
        "comparison with an int on the left",
        "result = 3 < lanes",
        [c > 3 for c in range(8)],
        "bool",
    )
    yield Construct("is None", "result = n\nif None is None:\n    result = n + 1", 6)
    yield Construct(
        "is not None of a block", "result = n\nif i32 is not None:\n    result = n + 1", 6
    )
    yield Construct("in", "result = n in (1, 2)", None, cpu="runs")
    yield Construct("if: one element", "result = n\nif n > 3:\n    result = n * 2", 10)
    yield Construct("if: an integer tensor", "result = n\nif neg:\n    result = n * 2", 10)
    yield Construct("if: a float tensor", "result = n\nif eps:\n    result = n * 2", 10)
    yield Construct("if: else", "if n > 30:\n    result = n * 2\nelse:\n    result = n - 1", 4)
    yield Construct(
        "if: elif",
        "if n > 30:\n    result = n * 2\nelif n == 5:\n    result = n + 1\nelse:\n    result ="
        " n - 1",
        6,
    )
    yield Construct(
        "if: a block", "result = n\nif lanes < n:\n    result = n + 1", None, words="block"
    )
    yield Construct("if: a float", "result = n\nif 0.5:\n    result = n + 1", None, words="float")
    yield Construct("if: a constant", "if K == 4:\n    result = n\nelse:\n    result = eps", 5)
    yield Construct(
        "if: and of tensors reads both", "result = n\nif n > 100 and neg < 0:\n    result = neg", 5
    )
    yield Construct("if: not", "result = n\nif not n > 100:\n    result = neg", -7)
    yield Construct("conditional expression", "result = n + 1 if n > 3 else n - 1", 6)
    yield Construct(
        "conditional expression: a tensor of a number",
        "x = 1 if n > 3 else 2\nresult = x.to(tl.int64)",
        1,
        "int64",
    )
    yield Construct(
        "conditional expression: a tensor in an expression",
        "result = (1 if n > 3 else 2).to(tl.float32)",
        1.0,
        "float32",
    )
    yield Construct("conditional expression: constant", "result = i32 if K == 4 else eps", I32)
    yield Construct(
        "conditional expression: blocks chosen by one", "result = i32 if n > 3 else two", I32
    )
    yield Construct(
        "conditional expression: a block decides",
        "result = i32 if i32 > 3 else two",
        None,
        words="block",
    )
    yield Construct(
        "min of blocks", "result = min(i32, by)", [min(p) for p in zip(I32, BY, strict=True)]
    )
    yield Construct(
        "max of blocks", "result = max(i32, by)", [max(p) for p in zip(I32, BY, strict=True)]
    )
    yield Construct("min of a tensor and a number", "result = min(n, 3)", 3)
    yield Construct("max of three", "result = max(n, 3, neg)", 5)
    yield Construct(
        "min of a block of floats and NaN",
        "result = max(odd32, 0.5)",
        [0.5, INF, 0.5, 0.5, 1, 0.5, 2, 0.5],
        "float32",
    )
    yield Construct("min of constants", "result = lanes * 0 + min(K, 3)", [3] * 8)
    yield Construct(
        "min of constants is a constant", "result = tl.arange(0, min(K, 16))", [0, 1, 2, 3]
    )
    yield Construct("abs", "result = abs(i32)", None, words="tl.abs")
    yield Construct("sum", "result = sum(i32)", None, words="tl.sum")
    yield Construct("any", "result = any(i32)", None, words="tl.max")
    yield Construct("round", "result = round(eps)", None, words="tl.floor")
    yield Construct("bool of a tensor", "result = bool(n)", None, words="x != 0")
    yield Construct("int of a tensor", "result = int(eps)", None, words="tl.int32")
    yield Construct("float of a tensor", "result = float(n)", None, words="tl.float32")
    yield Construct(
        "int and float of constants",
        "result = tl.full([], int(K * 1.5), tl.float32) + float(K)",
        10.0,
        "float32",
    )
    yield Construct("len", "result = n + len((1, 2, 3))", 8)
    yield Construct("isinstance", "result = n\nif isinstance(K, int):\n    result = n + 1", 6)
    yield Construct("print", "print('n', n)\nresult = n", 5)


def _assignments() -> Iterator[Construct]:
    yield Construct("a number that is assigned is int32", "result = 3", 3)
    yield Construct(
        "a number that is assigned may be 64 bits wide", "result = 2147483648 * 2", 2**32, "int64"
    )
    yield Construct(
        "a number that is assigned may be uint32", "result = 4294967295", 2**32 - 1, "uint32"
    )
    yield Construct("a float that is assigned is fp32", "result = 0.5", 0.5, "float32")
    yield Construct("a bool that is assigned is int1", "result = True", True, "bool")
    yield Construct("an assigned number wraps", "x = 2147483647\nresult = x + n", -(2**31) + 4)
    yield Construct(
        "an assigned float promotes",
        "x = 0.5\nresult = f16 * x",
        [0.5 * v for v in values("f16")],
        "float32",
    )
    yield Construct(
        "a float constant does not promote",
        "result = f16 * 0.5",
        [0.5 * v for v in values("f16")],
        "float16",
    )
    yield Construct(
        "a constexpr stays a constant",
        "x: tl.constexpr = K * 2\nresult = tl.arange(0, x)",
        list(range(8)),
    )
    yield Construct(
        "constant arithmetic is Python's", "x: tl.constexpr = -7 // 2\nresult = n + x", 1
    )
    yield Construct("constant remainder is Python's", "result = n * 0 + (-7 % 4)", 1)
    yield Construct("constant power", "result = n + K**2", 21)
    yield Construct(
        "an annotation that is no constexpr", "x: int = 3\nresult = x.to(tl.int64)", 3, "int64"
    )
    yield Construct("augmented", "result = n\nresult += 1\nresult *= 3\nresult //= 4", 4)
    yield Construct("augmented on a constant", "x = K\nx += 1\nresult = x.to(tl.int64)", 5, "int64")
    yield Construct(
        "augmented shifts and masks",
        "result = n\nresult <<= 3\nresult |= 1\nresult &= 15\nresult ^= 2\nresult >>= 1",
        5,
    )
    yield Construct("tuple", "a, b = n, neg\nresult = a - b", 12)
    yield Construct("tuple: swapped", "a, b = n, neg\na, b = b, a\nresult = a - b", -12)
    yield Construct("tuple: of numbers", "a, b = 1, 2\nresult = a.to(tl.int64) + b", 3, "int64")
    yield Construct(
        "tuple: nested", "(a, b), c = (n, neg), 2\nresult = a * c + b", None, cpu="runs"
    )
    yield Construct("tuple: indexed", "t = (n, neg)\nresult = t[1]", -7)
    yield Construct("tuple: joined", "t = (n, neg) + (n,)\nresult = t[2] + len(t)", 8)
    yield Construct("tuple: longer than its names", "a, b = n, neg, 3\nresult = a + b", -2)
    yield Construct("list", "t = [n, neg]\nresult = t[0] - t[1]", 12)
    yield Construct("list: append", "t = [n]\nt.append(n)\nresult = t[0]", None)
    yield Construct(
        "comprehension over a tuple", "t = [x * 2 for x in (n, neg)]\nresult = t[0] - t[1]", 24
    )
    yield Construct("two targets", "a = b = n\nresult = a + b", None, words="one assignment")
    yield Construct("item assignment", "x = i32\nx[0] = 1\nresult = x", None)
    yield Construct(
        "a global constant", "result = n + WIDTH", 21, helpers="WIDTH = tl.constexpr(16)\n"
    )
    yield Construct(
        "a global constant on the left",
        "result = (WIDTH - n).to(tl.int64)",
        11,
        "int64",
        helpers="WIDTH = tl.constexpr(16)\n",
    )
    yield Construct(
        "a global constant is a length",
        "result = tl.arange(0, WIDTH // 2)",
        list(range(8)),
        helpers="WIDTH = tl.constexpr(16)\n",
    )
    yield Construct(
        "a global number", "result = n + WIDTH", None, cpu="runs", helpers="WIDTH = 16\n"
    )
    yield Construct(
        "a global dtype", "result = n.to(KIND)", 5.0, "float32", helpers="KIND = tl.float32\n"
    )
    yield Construct("a shape times a block", "result = i32.shape[0] * two", [16] * 8)
    yield Construct("a shape is a constant", "result = tl.arange(0, i32.shape[0])", list(range(8)))
    yield Construct("a constant modulo a shape", "result = n + K % i32.shape[0]", 9)
    yield Construct("numel", "result = two + i32.numel", [10] * 8)
    yield Construct("value of a constexpr", "result = n + K.value", 9)
    yield Construct("assert", "assert n > 100, 'not met'\nresult = n", 5)
    yield Construct("pass and a docstring", "'''def nothing():'''\npass\nresult = n", 5)
    yield Construct("f-string of a constant", "tl.static_assert(K == 4, f'{K}')\nresult = n", 5)
    yield Construct("walrus", "result = (x := n) + x", None, cpu="runs")
    yield Construct("lambda", "f = lambda x: x + 1\nresult = f(n)", None, cpu="runs")
    yield Construct(
        "try", "try:\n    result = n\nexcept ValueError:\n    result = neg", None, cpu="runs"
    )
    yield Construct("dict", "t = {1: n}\nresult = t[1]", None, cpu="runs")
    yield Construct("del", "result = n\nx = n\ndel x", None, cpu="runs")


_HELPER = """
@jit
def double(x):
    return x * 2


@jit
def pair(x, y):
    return x + y, x - y


@jit
def early(x):
    if x > 3:
        return x * 10
    return x


@jit
def sign(x):
    if x > 3:
        return 1
    return -1


@jit
def limits(x):
    if x > 3:
        return 1, x
    else:
        return 2, x + 1


@jit
def nested(x, SCALE: tl.constexpr = 3):
    y = double(x)
    return y * SCALE


@jit
def nothing(x):
    x = x + 1


@jit
def fixed(x, WIDE: tl.constexpr):
    if WIDE:
        return x.to(tl.int64)
    else:
        return x


@jit
def width(WIDE: tl.constexpr):
    return 8 if WIDE else 4


@jit
def first(a, b):
    return a


@jit
def add(a, b):
    return a + b


@jit
def larger_by_size(a, i, b, j):
    keep = (a > b) or (a == b and i < j)
    return tl.where(keep, a, b), tl.where(keep, i, j)


@triton.constexpr_function
def squared(x):
    return x * x


@triton.constexpr_function
def length_of_text(x):
    return len(f"{x}")


ONE = tl.constexpr(1)
"""


def _helpers() -> Iterator[Construct]:
    def with_helper(
        name: str, body: str, want: Any, dtype: str = "int32", **rest: Any
    ) -> Construct:
        return Construct(name, body, want, dtype, helpers=_HELPER, **rest)

    yield with_helper("helper", "result = double(n)", 10)
    yield with_helper("helper: a number is a constant", "result = n + double(4)", 13)
    yield with_helper("helper: a tuple", "a, b = pair(n, neg)\nresult = a * b", -24)
    yield with_helper("helper: a tuple, indexed", "result = pair(n, neg)[1]", 12)
    yield with_helper("helper: an early return", "result = early(n) + early(neg)", 43)
    yield with_helper(
        "helper: numbers returned by a condition",
        "result = sign(n).to(tl.int64) + sign(neg)",
        0,
        "int64",
    )
    yield with_helper(
        "helper: tuples returned by a condition",
        "a, b = limits(neg)\nresult = limits(n)[0].to(tl.int64) * 10 + b",
        4,
        "int64",
    )
    yield with_helper("helper: nested, with a default", "result = nested(n)", 30)
    yield with_helper("helper: by name", "result = nested(SCALE=K, x=n)", 40)
    yield with_helper("helper: returns nothing", "nothing(n)\nresult = n", 5)
    yield with_helper("helper: a constant decides", "result = fixed(n, True)", 5, "int64")
    yield with_helper(
        "helper: a constant is returned",
        "result = tl.arange(0, width(True))",
        list(range(8)),
        since=(3, 7),
    )
    yield with_helper("helper: starred", "t = (n, neg)\nresult = add(*t)", -2)
    yield with_helper(
        "constexpr_function", "result = tl.arange(0, squared(K) // 2)", list(range(8))
    )
    yield with_helper(
        "constexpr_function: a tuple is the compiler's",
        "result = n + length_of_text((1, 2))",
        15,
        since=(3, 7),
    )
    yield with_helper(
        "isinstance: a tuple", "result = n\nif isinstance((1, 2), tl.tuple):\n    result = neg", -7
    )
    yield with_helper(
        "isinstance: a constant is its number",
        "result = n\nif isinstance(ONE, int) and isinstance(i32.shape[0], int):\n    result = neg",
        -7,
    )
    yield with_helper("is: True", "result = n\nif K is not None:\n    result = neg", -7)
    yield with_helper("is: a dtype", "result = n\nif i32.dtype is tl.int32:\n    result = neg", -7)
    yield with_helper("tl.reduce", "result = tl.reduce(i32, 0, add)", wrap(sum(I32), "int32"))
    yield with_helper("tl.reduce: the order of lanes", "result = tl.reduce(i32, 0, first)", 7)
    yield with_helper(
        "tl.reduce: two components",
        "a, b = tl.reduce((small, lanes), 0, larger_by_size)\nresult = a * 10 + b",
        33,
    )
    yield with_helper(
        "tl.reduce: keep_dims", "result = tl.reduce(two, 0, add, keep_dims=True)", [16]
    )
    yield with_helper(
        "tl.associative_scan",
        "result = tl.associative_scan(lanes, 0, add)",
        [0, 1, 3, 6, 10, 15, 21, 28],
    )
    yield with_helper(
        "tl.associative_scan: reverse",
        "result = tl.associative_scan(lanes, 0, add, reverse=True)",
        [28, 28, 27, 25, 22, 18, 13, 7],
    )
    yield with_helper(
        "x.reduce and x.associative_scan",
        "result = lanes.reduce(0, add) + lanes.associative_scan(0, add)",
        [28 + v for v in (0, 1, 3, 6, 10, 15, 21, 28)],
    )
    yield with_helper(
        "tl.map_elementwise",
        "result = tl.map_elementwise(early, small)",
        None,
        cpu="words",
        words="map_elementwise",
    )


def _integers() -> Iterator[Construct]:
    def each(operation, left=I32, right=BY, dtype="int32") -> list[int]:
        return [wrap(operation(a, b), dtype) for a, b in zip(left, right, strict=True)]

    yield Construct("i32 + i32 wraps", "result = i32 + by", each(lambda a, b: a + b))
    yield Construct("i32 - i32 wraps", "result = i32 - by", each(lambda a, b: a - b))
    yield Construct("i32 * i32 wraps", "result = i32 * by", each(lambda a, b: a * b))
    yield Construct("i32 // i32 is C's", "result = i32 // by", each(lambda a, b: by_c(a, b)[0]))
    yield Construct("i32 % i32 is C's", "result = i32 % by", each(lambda a, b: by_c(a, b)[1]))
    yield Construct("one // one is C's", "result = neg // 2", -3)
    yield Construct("one % one is C's", "result = neg % 4", -3)
    yield Construct("one // by a tensor", "result = 7 // neg", -1)
    yield Construct("a constant % a block", "result = 100 % by", [by_c(100, b)[1] for b in BY])
    yield Construct("the smallest // -1", "result = i32 // (two - 3)", each(lambda a, b: -a))
    yield Construct(
        "i32 / i32 is fp32", "result = by / two", [b / 2 for b in BY], "float32", near=1e-6
    )
    yield Construct(
        "u32 // u32", "result = u32 // two.to(tl.uint32)", [v // 2 for v in values("u32")], "uint32"
    )
    yield Construct("u32 % u32", "result = u32 % 10", [v % 10 for v in values("u32")], "uint32")
    yield Construct(
        "u32 wraps", "result = u32 * 3", [wrap(v * 3, "uint32") for v in values("u32")], "uint32"
    )
    yield Construct(
        "i32 + u32 is u32",
        "result = i32 + u32",
        [wrap(a + b, "uint32") for a, b in zip(I32, values("u32"), strict=True)],
        "uint32",
    )
    yield Construct("i32 // u32", "result = i32 // u32", None)
    yield Construct("u32 - a negative number", "result = u32 + -1", None)
    yield Construct("i8 + a number out of its range", "result = i8 + 300", None)
    yield Construct(
        "i8 wraps", "result = i8 * 2", [wrap(2 * v, "int8") for v in values("i8")], "int8"
    )
    yield Construct(
        "u8 wraps", "result = u8 + 1", [wrap(v + 1, "uint8") for v in values("u8")], "uint8"
    )
    yield Construct(
        "i64 wraps", "result = i64 + i64", [wrap(2 * v, "int64") for v in values("i64")], "int64"
    )
    yield Construct("an int argument of 64 bits", "result = big + n", 2**40 + 5, "int64")
    yield Construct("program_id is int32", "result = tl.program_id(0)", 0)
    yield Construct(
        "program_id in 64 bits", "result = tl.program_id(axis=0).to(tl.int64) * big", 0, "int64"
    )
    yield Construct("num_programs", "result = tl.num_programs(0)", 1)
    yield Construct(
        "i32 << i32", "result = two << shift", each(lambda a, b: a << b, [2] * 8, values("shift"))
    )
    yield Construct(
        "i32 >> i32 keeps the sign",
        "result = i32 >> shift",
        each(lambda a, b: a >> b, I32, values("shift")),
    )
    yield Construct(
        "u32 >> fills with zeros",
        "result = u32 >> shift.to(tl.uint32)",
        [a >> b for a, b in zip(values("u32"), values("shift"), strict=True)],
        "uint32",
    )
    yield Construct(
        "a shifted number stays as it was",
        "x = u32 >> 1\nresult = u32 // 2 + x * 0",
        [v // 2 for v in values("u32")],
        "uint32",
    )
    yield Construct(
        "& | ^", "result = (i32 & 12) | (by ^ 1)", each(lambda a, b: (a & 12) | (b ^ 1))
    )
    yield Construct("~", "result = ~i32", [~v for v in I32])
    yield Construct("~ of a mask", "result = ~(lanes < 3)", [c >= 3 for c in range(8)], "bool")
    yield Construct("-", "result = -i32", [wrap(-v, "int32") for v in I32])
    yield Construct("+", "result = +i32", None)
    yield Construct("a bit operation on floats", "result = f32 & 1", None)
    yield Construct("** of a block", "result = i32**2", None)
    yield Construct("@ of blocks", "result = i32 @ i32", None)
    yield Construct(
        "mask + mask",
        "result = (lanes < 3).to(tl.int32) + (lanes < 5).to(tl.int32)",
        [2, 2, 2, 1, 1, 0, 0, 0],
    )
    yield Construct("mask * a block", "result = (lanes < 3) * two", [2, 2, 2, 0, 0, 0, 0, 0])
    yield Construct("a bool argument", "result = n\nif flag:\n    result = neg", -7)
    yield Construct("a float argument is fp32", "result = eps * 1", 0.10000000149011612, "float32")
    yield Construct(
        "a float argument promotes half precision",
        "result = f16 * half",
        [0.5 * v for v in values("f16")],
        "float32",
    )
    yield Construct("a float argument has methods", "result = half.to(tl.float64)", 0.5, "float64")
    yield Construct(
        "a float argument and fp64", "result = f64 * 0 + eps", [0.10000000149011612] * 8, "float64"
    )
    yield Construct(
        "== and != of blocks", "result = (i32 == 7) | (i32 != i32)", [v == 7 for v in I32], "bool"
    )
    yield Construct(
        "u32 < u32", "result = u32 < 2147483648", [v < 2**31 for v in values("u32")], "bool"
    )
    yield Construct(
        "<= and >=", "result = (i32 <= 0) & (i32 >= -7)", [-7 <= v <= 0 for v in I32], "bool"
    )
    unsigned = [u * 2**16 for u in (1, 3, 65535, 32768, 0, 1, 65535, 2)]
    yield Construct(
        "tl.umulhi",
        "result = tl.umulhi(u32, tl.full([8], 65536, tl.uint32))",
        [v >> 16 for v in values("u32")],
        "uint32",
    )
    yield Construct(
        "tl.umulhi of negative int32",
        "result = tl.umulhi(i32, i32)",
        [wrap((v % 2**32) ** 2 >> 32, "int32") for v in I32],
    )
    yield Construct(
        "tl.umulhi of 64 bits",
        "result = tl.umulhi(i64, i64)",
        [wrap((v % 2**64) ** 2 >> 64, "int64") for v in values("i64")],
        "int64",
    )
    yield Construct(
        "tl.abs of integers", "result = tl.abs(i32)", [wrap(abs(v), "int32") for v in I32]
    )
    yield Construct("tl.add, tl.sub, tl.mul", "result = tl.add(tl.mul(n, 3), tl.sub(neg, 1))", 7)
    yield Construct("tl.cdiv", "result = tl.cdiv(n, 2) + n.cdiv(4)", 5)
    yield Construct(
        "tl.cdiv of a constant", "result = tl.arange(0, tl.cdiv(K, 2))", [0, 1], since=(3, 7)
    )
    yield Construct(
        "tl.swizzle2d", "a, b = tl.swizzle2d(n // 4, n % 4, 4, 4, 2)\nresult = a * 10 + b", 12
    )
    assert len(unsigned) == 8


_RANK = {
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 3,
    "uint32": 3,
    "int64": 4,
    "uint64": 4,
}


def promoted(a: str, b: str, division: bool) -> str | None:
    """The dtype of two blocks' sum, by the rules of Triton's semantics page; with ``division``, of
    ``/``."""
    floats = [d for d in (a, b) if d not in _RANK]
    if "float64" in floats:
        return "float64"
    if "float32" in floats:
        return "float32"
    if "float16" in floats:
        return "float32" if division else "float16"
    if floats:
        return "bfloat16" if a == b and not division else "float32"
    if division:
        return "float32"
    if _RANK[a] == _RANK[b]:
        return a if a.startswith("u") else b
    return (
        max(a, b, key=_RANK.__getitem__) if a.startswith("u") == b.startswith("u") else _mixed(a, b)
    )


def _mixed(a: str, b: str) -> str:
    unsigned, signed = (a, b) if a.startswith("u") else (b, a)
    return unsigned if _RANK[unsigned] >= _RANK[signed] else signed


def _promotion() -> Iterator[Construct]:
    """Every pair of dtypes: the dtype of a sum, and of a quotient; and each dtype with a
    constant."""
    for a, b in product(SHORT, repeat=2):
        left, right = f"{SHORT[a]} * 0 + 6", f"{SHORT[b]} * 0 + 3"
        for kind in (a, b):
            assert kind in SHORT
        signs_differ = a in _RANK and b in _RANK and a.startswith("u") != b.startswith("u")
        kind = promoted(a, b, False)
        assert kind is not None
        yield Construct(f"{a} + {b}", f"result = ({left}) + ({right})", [9] * 8, kind)
        yield Construct(f"{a} * {b}", f"result = ({left}) * ({right})", [18] * 8, kind)
        want = None if signs_differ else [2] * 8
        kind = promoted(a, b, True)
        assert kind is not None
        yield Construct(f"{a} / {b}", f"result = ({left}) / ({right})", want, kind, near=1e-6)
        yield Construct(f"{a} < {b}", f"result = ({left}) < ({right})", [False] * 8, "bool")
    for a in SHORT:
        whole = a in _RANK
        left = f"({SHORT[a]} * 0 + 6)"
        yield Construct(f"{a} + an int", f"result = {left} + 3", [9] * 8, a)
        yield Construct(f"an int - {a}", f"result = 9 - {left}", [3] * 8, a)
        yield Construct(
            f"{a} + a float", f"result = {left} + 0.5", [6.5] * 8, "float32" if whole else a
        )
        yield Construct(
            f"{a} / an int",
            f"result = {left} / 2",
            [3] * 8,
            "float64" if a == "float64" else "float32",
            near=1e-6,
        )
        yield Construct(
            f"a float / {a}",
            f"result = 3.0 / {left}",
            [0.5] * 8,
            "float64" if a == "float64" else "float32",
            near=1e-6,
        )
        yield Construct(f"{a} > a float", f"result = {left} > 5.5", [True] * 8, "bool")
        yield Construct(f"{a} // an int", f"result = {left} // 4", [1] * 8 if whole else None, a)
        yield Construct(
            f"{a} % an int",
            f"result = {left} % 4",
            [2] * 8,
            a if whole or a in ("float32", "float64") else "float32",
        )
        yield Construct(
            f"-{a}", f"result = -({SHORT[a]} * 0 + 3)", [wrap(-3, a) if whole else -3] * 8, a
        )
        yield Construct(
            f"tl.where of {a}", f"result = tl.where(lanes < 3, {left}, 1)", [6] * 3 + [1] * 5, a
        )
        yield Construct(
            f"tl.where of {a} and fp32",
            f"result = tl.where(lanes < 3, {left}, f32 * 0 + 1)",
            [6] * 3 + [1] * 5,
            promoted(a, "float32", False) or "",
        )
        yield Construct(
            f"tl.sum of {a}",
            f"result = tl.sum({SHORT[a]} * 0 + 3, 0)",
            24,
            {"int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}.get(a, a),
        )
        yield Construct(
            f"tl.max of {a}",
            f"result = tl.max({left}, 0)",
            6,
            {
                "int8": "int32",
                "int16": "int32",
                "uint8": "int32",
                "uint16": "int32",
                "float16": "float32",
                "bfloat16": "float32",
            }.get(a, a),
        )
        yield Construct(
            f"tl.cumsum of {a}",
            f"result = tl.cumsum({SHORT[a]} * 0 + 3, 0)",
            [3 * (i + 1) for i in range(8)],
            {
                "int8": "int32",
                "int16": "int32",
                "uint8": "uint32",
                "uint16": "uint32",
                "bfloat16": "float32",
            }.get(a, a),
        )


def constructs() -> list[Construct]:
    from constructs_of_memory import memory
    from constructs_of_values import values_and_shapes

    makers = (_loops, _truth, _assignments, _helpers, _integers, _promotion)
    found = [construct for make in makers for construct in make()]
    found += [*values_and_shapes(), *memory()]
    names = [construct.name for construct in found]
    assert len(set(names)) == len(names), sorted(
        name for name in set(names) if names.count(name) > 1
    )
    return found

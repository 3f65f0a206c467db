"""The stand-in for PyTorch beside PyTorch itself: the same tensors, views, results, messages and
prints."""

from __future__ import annotations

import copy
import importlib.util
import re
import sys
from typing import Any

import numpy as np
import pytest
import torch

# derandomized: PyTorch's own last bits depend on sizes in ways that no rule here follows
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.base import paths

_FOLDER = paths.ROOT / "course_lib" / "tab" / "standins" / "torch"


def load() -> Any:
    """The stand-in, under a name that leaves PyTorch's alone."""
    spec = importlib.util.spec_from_file_location(
        "tab_torch", _FOLDER / "__init__.py", submodule_search_locations=[str(_FOLDER)]
    )
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["tab_torch"] = module
    spec.loader.exec_module(module)
    return module


tab = load()
NAMES = {
    *tab.__all__,
    *sys.modules["tab_torch._dtypes"].DTYPES,
    *sys.modules["tab_torch._tensor"].OPERATIONS,
}
DTYPES = ("bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64")
FLOATS = DTYPES[4:]
NUMBERS = (
    0, 1, -1, 2, 3, 0.5, -0.1, 0.3, 1e-3, 100.7, 2047, 2049, 4098.5, 65504.0, 7e4, 1e-8, -1e-7,
    6e-8, 1.5e38, float("inf"), float("nan"), -0.0,
)  # fmt: skip
dtypes = st.sampled_from(DTYPES)
# four may be "channels last"
shapes = st.lists(st.integers(0, 4) | st.sampled_from([1, 2, 3]), max_size=3).map(tuple)


def describe(value: Any) -> Any:
    """Whatever either of the two returned, as plain data."""
    if isinstance(value, (torch.Tensor, tab.Tensor)):
        value = value.detach()
        strides = value.stride() if value.numel() else "any"
        return (
            str(value.dtype),
            tuple(value.shape),
            strides,
            value.storage_offset(),
            value.is_contiguous(),
            repr(value.tolist()),
        )
    if isinstance(value, (tuple, list)) and not isinstance(value, (torch.Size, tab.Size)):
        return [describe(part) for part in value]
    return repr(value).replace("tab_torch", "torch")


def do(function: Any, *arguments: Any) -> Any:
    """What a call returns, or the kind and the words of its error."""
    try:
        return describe(function(*arguments))
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        return type(error).__name__, str(error).splitlines()[0]


def values(shape: tuple[int, ...], kind: str, seed: int) -> np.ndarray:
    """Numbers that a tensor of this dtype can take: for integers small ones."""
    random = np.random.default_rng(seed)
    if kind in FLOATS:
        return random.choice(np.array(NUMBERS, np.float64), shape)
    return random.integers(0, {"bool": 2, "uint8": 9}.get(kind, 50), shape) - (
        20 if kind.startswith("int") else 0
    )


@st.composite
def pairs(
    draw: Any, kinds: Any = dtypes, sizes: Any = shapes, laid_out: bool = True
) -> tuple[Any, Any]:
    """The same tensor twice: in PyTorch, and in the stand-in. Its dimensions lie in memory in any
    order and with gaps."""
    shape, kind, seed = draw(sizes), draw(kinds), draw(st.integers(0, 99))
    order = draw(st.permutations(range(len(shape)))) if laid_out else range(len(shape))
    steps = [draw(st.sampled_from([1, 1, 1, 2])) if laid_out else 1 for _ in shape]
    stretched = [laid_out and draw(st.integers(0, 7)) == 0 for _ in shape]
    room = [0] * len(shape)
    for k, place in enumerate(order):
        room[place] = 1 if stretched[k] else shape[k] * steps[k]
    numbers = values(tuple(room), kind, seed).tolist()
    made = []
    for lib in (torch, tab):
        tensor = lib.tensor(numbers, dtype=getattr(lib, kind)).reshape(room).permute(tuple(order))
        tensor = tensor[tuple(slice(None, None, step) for step in steps)].expand(shape)
        made.append(tensor)
    return made[0], made[1]


def both(function: Any, *operands: tuple[Any, Any]) -> tuple[Any, Any]:
    """``function(lib, ...)`` of PyTorch and of the stand-in."""
    return tuple(
        do(function, lib, *(pair[k] for pair in operands)) for k, lib in enumerate((torch, tab))
    )  # pyright: ignore[reportReturnType]


# ---- the set of names


def test_every_name_is_one_of_pytorch():
    assert set(dir(torch)) >= NAMES
    assert {name for name in dir(tab.Tensor) if not name.startswith("_")} <= set(dir(torch.Tensor))
    for name in ("nn", "nn.functional", "autograd", "library", "compiler"):
        mine, theirs = sys.modules[f"tab_torch.{name}"], sys.modules[f"torch.{name}"]
        assert {key for key in vars(mine) if not key.startswith("_")} <= set(dir(theirs))


def test_no_other_name_is_there():
    shown = {name for name in vars(tab) if not name.startswith("_")}
    assert shown == NAMES
    for name in (
        {name for name in dir(torch) if not name.startswith("__")} - shown - {"_C", "_tensor"}
    ):
        assert not hasattr(tab, name)
    x = tab.ones(2)
    for name in set(dir(torch.Tensor)) - set(dir(tab.Tensor)):
        assert not hasattr(x, name)


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("torch.svd", "torch.svd"),
        ("torch.ones(2).backward()", "torch.Tensor.backward"),
        ("torch.Tensor([1])", r"torch.Tensor\(\)"),
        ("torch.nn.Linear", "torch.nn.Linear"),
        ("torch.nn.functional.relu", "torch.nn.functional.relu"),
        ("torch.nn.LayerNorm(4)", "a module of torch.nn"),
        ("type('Norm', (torch.nn.RMSNorm,), {})(4)", "a module of torch.nn"),
        ("type('F', (torch.autograd.Function,), {}).apply(1)", "torch.autograd.Function.apply"),
        ("torch.autograd.gradcheck(None, ())", "torch.autograd.gradcheck"),
        ("torch.library.custom_op('a::b', mutates_args=())(print)(1)", "the operator a::b"),
        ("torch.zeros(2, requires_grad=True)", "requires_grad=True"),
        ("torch.zeros(2, device='cuda')", "the device 'cuda'"),
        ("torch.ones(2).to('cuda')", "the device 'cuda'"),
        ("torch.randn(2, dtype=torch.float16)", "a random tensor of torch.float16"),
        ("torch.float32.is_complex", "torch.dtype.is_complex"),
    ],
)
def test_what_is_not_there_says_so_in_one_line(code, what):
    line = (
        f"{what} needs PyTorch, which a browser tab does not have: open this lesson on your"
        " machine."
    )
    with pytest.raises(AttributeError, match=f"^{line}$"):
        eval(code, {"torch": tab})


@pytest.mark.parametrize(
    "code",
    [
        "import tab_torch.utils.data",
        "from tab_torch import vmap",
        "from tab_torch.nn import Linear",
    ],
)
def test_an_import_of_what_is_not_there_says_so_too(code):
    with pytest.raises(
        ImportError,
        match=r"^torch\.\S+ needs PyTorch, which a browser tab does not have: open this lesson",
    ):
        exec(code)


# ---- tensors out of numbers

scalars = st.sampled_from(
    [
        True,
        3,
        -1,
        0.5,
        1e-3,
        np.float32(0.1),
        np.float64(0.1),
        np.int32(3),
        np.arange(3.0),
        np.ones(3, np.int32),
    ]
)
nested = st.recursive(
    scalars, lambda inner: st.lists(inner, min_size=1, max_size=3), max_leaves=6
) | st.just([])


@settings(deadline=None, derandomize=True)
@given(nested, st.none() | dtypes)
def test_a_tensor_out_of_lists_has_the_dtype_and_the_numbers(data, kind):
    mine, theirs = (
        do(lambda lib=lib: lib.tensor(data, dtype=kind and getattr(lib, kind)))
        for lib in (tab, torch)
    )
    # PyTorch takes no number of NumPy where another dtype is asked for
    if not theirs[0].endswith("Error"):
        assert mine == theirs


@pytest.mark.parametrize(
    "code",
    [
        "torch.tensor([[1, 2], [3]])",
        "torch.tensor([torch.tensor(1.5), 2])",
        "torch.arange(5)",
        "torch.arange(8.0)",
        "torch.arange(2, 9, 3)",
        "torch.arange(0, 1, 0.25)",
        "torch.arange(3, dtype=torch.float16)",
        "torch.full((2, 3), 7)",
        "torch.full((2,), True)",
        "torch.full((2,), 0.1, dtype=torch.bfloat16)",
        "torch.full((), float('nan'))",
        "torch.zeros(2, 3, dtype=torch.int32)",
        "torch.ones((2, 3))",
        "torch.ones([2])",
        "torch.ones(2).new_empty(2, 3, dtype=torch.int64).shape",
        "torch.ones(2, dtype=torch.bfloat16).new_empty(3).dtype",
        "torch.empty(2, 3).shape[:1]",
        "torch.empty(2, 3).shape.numel()",
        "torch.full_like(torch.ones(2, 3).t(), 5)",
        "torch.zeros_like(torch.ones(2, 3).t(), memory_format=torch.contiguous_format)",
        "torch.full_like(torch.ones(3, 2, 1).permute(2, 0, 1), 3, dtype=torch.int32)",
        "torch.empty(2).device",
        "torch.empty(2).is_cuda",
        "str(torch.empty(2).device)",
        "torch.device('cpu') == torch.empty(1).device",
        "torch.float32",
        "torch.float16.itemsize, torch.float16.is_floating_point, torch.int64.is_floating_point",
        (
            "[torch.finfo(kind).eps for kind in (torch.float16, torch.bfloat16, torch.float32,"
            " torch.float64)]"
        ),
        (
            "[torch.finfo(kind).max for kind in (torch.float16, torch.bfloat16, torch.float32,"
            " torch.float64)]"
        ),
        (
            "[torch.finfo(kind).tiny for kind in (torch.float16, torch.bfloat16, torch.float32,"
            " torch.float64)]"
        ),
        "torch.finfo(torch.int32)",
        "torch.inf, torch.nan",
    ],
)
def test_factories(code):
    mine, theirs = (do(eval, code, {"torch": lib}) for lib in (tab, torch))
    assert mine == theirs


# ---- memory


@settings(deadline=None, derandomize=True)
@given(st.data())
def test_views_have_the_shapes_strides_and_offsets_of_pytorch_and_share_memory(data):
    theirs, mine = data.draw(pairs())
    whole = theirs, mine
    for _ in range(data.draw(st.integers(1, 3))):
        rank = theirs.ndim
        dim = st.integers(-rank - 1, rank)
        size = st.lists(st.integers(-1, 6), max_size=4)
        part = st.none() | st.just(...) | st.integers(-3, 3) | st.builds(slice,
            st.none() | st.integers(-4, 4), st.none() | st.integers(-4, 5),
            st.sampled_from([None, 1, 2]))  # fmt: skip
        name, arguments = data.draw(
            st.one_of(
                st.tuples(st.just("__getitem__"), st.tuples(st.lists(part, max_size=4).map(tuple))),
                st.tuples(st.just("transpose"), st.tuples(dim, dim)),
                st.tuples(st.just("movedim"), st.tuples(dim, dim)),
                st.tuples(st.just("permute"), st.tuples(st.permutations(range(rank)).map(tuple))),
                st.tuples(st.sampled_from(["view", "reshape"]), st.tuples(size.map(tuple))),
                st.tuples(st.just("expand"), st.tuples(size.map(tuple))),
                st.tuples(
                    st.just("as_strided"),
                    st.tuples(
                        st.just((2, 2)),
                        st.tuples(st.integers(0, 3), st.integers(0, 3)),
                        st.integers(0, 4),
                    ),
                ),
                st.tuples(
                    st.sampled_from(["t", "flatten", "contiguous", "clone", "detach"]), st.just(())
                ),
                st.tuples(st.just("split"), st.tuples(st.integers(1, 3), dim)),
                st.tuples(st.just("unbind"), st.tuples(dim)),
            )
        )
        if name == "__getitem__" and list(arguments[0]).count(...) > 1:
            continue
        want, got = (do(getattr(tensor, name), *arguments) for tensor in (theirs, mine))
        if want and want[0] in ("RuntimeError", "ValueError", "IndexError", "TypeError"):
            assert got[0] in ("RuntimeError", "ValueError", "IndexError", "TypeError"), (
                name,
                arguments,
            )
            return
        if name in ("reshape", "flatten", "contiguous", "clone") and want[-3] == got[-3]:
            pass  # a copy begins at 0, and so does PyTorch's
        assert got == want, (name, arguments)
        theirs, mine = (getattr(tensor, name)(*arguments) for tensor in (theirs, mine))
        if isinstance(theirs, tuple):
            break
    for tensor in (theirs, mine):
        first = tensor[0] if isinstance(tensor, tuple) and tensor else tensor
        if not isinstance(first, tuple):
            first.fill_(1)
    assert describe(whole[0]) == describe(whole[1])


@pytest.mark.parametrize(
    "code",
    [
        "x.view(12, 2)",
        "x.view(5)",
        "x.reshape(-1, -1)",
        "x.t().view(12)",
        "x.expand(4, 4)",
        "x.expand(3)",
        "x[3]",
        "x[0, 0, 0]",
        "x[::-1]",
        "x + torch.ones(2)",
        "torch.ones(2, 3) * torch.ones(3, 2)",
        "bool(x)",
        "bool(torch.ones(0))",
        "x.item()",
        "len(x[0, 0])",
        "iter(x[0, 0])",
        "range(3)[x[0, 0]]",
        "x.to(torch.bfloat16).numpy()",
        "x.to(torch.int64).mean()",
        "x.sum(2)",
        "x.as_strided((4, 4), (4, 1))",
        "torch.ones(2, 2, 2).t()",
        "torch.from_numpy(np.ones(3)[::-1])",
        "torch.allclose(x, x.double())",
        "torch.nn.functional.layer_norm(x, (3,))",
        "torch.tensor([1, 2]).mul_(0.5)",
        "torch.ones(1).add_(torch.ones(3))",
        "f'{x:.2f}'",
        "x.copy_(torch.ones(5))",
    ],
)
def test_errors_have_the_words_of_pytorch(code):
    mine, theirs = (
        do(eval, code, {"torch": lib, "np": np, "x": lib.arange(12.0).reshape(3, 4)})
        for lib in (tab, torch)
    )
    assert theirs[0].endswith("Error")
    assert mine == theirs


@settings(deadline=None, derandomize=True)
@given(pairs(), pairs(), st.booleans())
def test_copies_round_as_pytorch_does(target, source, into):
    def transfer(lib, target, source):
        return target.clone().copy_(source) if into else source.to(target.dtype)

    theirs, mine = both(transfer, target, source)
    if theirs[0] != "RuntimeError":
        integers = str(target[0].dtype) not in [f"torch.{kind}" for kind in (*FLOATS, "bool")]
        if integers and source[0].is_floating_point() and not (source[0].abs() < 200).all():
            return  # C leaves the value open
        if str(target[0].dtype) == "torch.uint8" and (source[0].double() < 0).any():
            return
        assert mine == theirs


@settings(deadline=None, derandomize=True)
@given(st.integers(0, 2**16 - 1))
def test_bf16_takes_the_nearest_even_of_any_fp32(high):
    for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF):
        number = np.array([(high << 16) | low], np.uint32).view(np.float32)
        want, got = (
            lib.from_numpy(number.copy()).bfloat16().float().numpy() for lib in (torch, tab)
        )
        assert want.tobytes() == got.tobytes() or (np.isnan(want).all() and np.isnan(got).all())


def test_memory_is_shared_with_numpy_both_ways():
    array = np.arange(6.0).reshape(2, 3)
    x = tab.from_numpy(array[:, 1:])
    x[0, 0] = 50
    array[1, 2] = 60
    assert array[0, 1] == 50 and x.tolist() == [[50, 2], [4, 60]] and x.stride() == (3, 1)
    x.numpy()[0, 1] = 70
    assert array[0, 2] == 70 and np.asarray(x).base is not None
    assert x.data_ptr() == array[:, 1:].ctypes.data


def test_a_storage_is_what_tritons_interpreter_asks_of_it():
    x = tab.arange(12, dtype=tab.bfloat16).reshape(3, 4)[1:, 1:]
    storage = x.untyped_storage()
    assert (storage.nbytes(), x.data_ptr() - storage.data_ptr(), x.element_size()) == (24, 10, 2)
    copied = x.new_empty(0, device="cpu")
    copied.set_(storage.cpu(), x.storage_offset(), x.size(), x.stride())
    copied.fill_(9)
    assert x.tolist() == [[9, 9, 9], [9, 9, 9]] and x.dim() == 2
    assert tab.empty(0, dtype=tab.uint8).set_(storage).numpy().tobytes() == storage.memory.tobytes()


@settings(deadline=None, derandomize=True)
@given(st.data())
def test_elements_are_written_as_pytorch_does(data):
    theirs, mine = data.draw(
        pairs(
            kinds=st.sampled_from(["float32", "int64", "float16", "bfloat16"]),
            sizes=st.just((3, 4)),
        )
    )
    index = data.draw(
        st.sampled_from(
            [0, (1, 2), (slice(None), 1), ..., (..., slice(0, 2)), [0, 2], ([0, 1], [2, 3])]
        )
    )
    value = data.draw(st.sampled_from([1, 0.3, True, 70000.0]))

    def write(lib, tensor):
        tensor = tensor.contiguous().clone()
        tensor[index] = value
        return tensor, tensor[index]

    assert describe(write(torch, theirs)) == describe(write(tab, mine))


def test_tensors_pick_elements_as_indices():
    for lib in (torch, tab):
        x = lib.arange(12.0).reshape(3, 4)
        assert x[lib.tensor([2, 0])].tolist() == [[8, 9, 10, 11], [0, 1, 2, 3]]
        assert x[x > 9].tolist() == [10, 11]
        assert x[lib.tensor(1)].data_ptr() == x[1].data_ptr()
        assert x[1:, lib.tensor([[0, 1], [2, 3]])].shape == (2, 2, 2)


# ---- arithmetic

operations = st.sampled_from(["add", "sub", "mul", "div", "lt", "le", "gt", "ge", "eq", "ne"])
operand = pairs() | st.sampled_from([True, 0, 1, -3, 7, 0.1, 1e-3, -2.5, 1e5, float("inf")]).map(
    lambda n: (n, n)
)
_SIGNS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
}


@settings(deadline=None, derandomize=True, max_examples=300)
@given(operations, operand, operand)
def test_arithmetic_promotes_broadcasts_and_rounds_as_pytorch_does(name, first, second):
    if not any(isinstance(pair[0], torch.Tensor) for pair in (first, second)):
        return
    if name == "sub" and any(
        getattr(pair[0], "dtype", type(pair[0])) in (torch.bool, bool) for pair in (first, second)
    ):
        return  # PyTorch refuses the difference of two truths
    theirs, mine = both(
        lambda lib, a, b: eval(f"a {_SIGNS[name]} b", {"a": a, "b": b}), first, second
    )
    halves = ("torch.float16", "torch.bfloat16")
    if (
        name in ("add", "sub")
        and not isinstance(second[0], torch.Tensor | int)
        and theirs[0] in halves
    ):
        # PyTorch rounds the number to half precision before or after it is added: that depends on
        # how many elements there are.
        numbers = [
            np.array(eval(values, {"nan": np.nan, "inf": np.inf}))
            for values in (mine[5], theirs[5])
        ]
        assert mine[:5] == theirs[:5] and np.allclose(
            *numbers, rtol=2**-7, atol=2**-7 * abs(second[0]), equal_nan=True
        )
    else:
        assert mine == theirs


@settings(deadline=None, derandomize=True)
@given(pairs(), st.sampled_from([1, 2, 3, 7, -4, 2.0, 0.5]))
def test_remainders(pair, divisor):
    if pair[0].dtype in (torch.bool, torch.uint8, torch.float16, torch.bfloat16):
        return  # no lesson takes a remainder of these
    theirs, mine = both(lambda lib, x: x % divisor, pair)
    assert mine == theirs


@settings(deadline=None, derandomize=True)
@given(pairs(), st.sampled_from([0, 1, 2, 3, -1, 2.0]))
def test_powers(pair, exponent):
    if not pair[0].is_floating_point() and (
        exponent < 0 or pair[0].dtype in (torch.bool, torch.uint8)
    ):
        return
    theirs, mine = (tensor**exponent for tensor in pair)
    assert describe(mine)[:2] == describe(theirs)[:2]
    assert np.allclose(
        mine.double().numpy(),
        theirs.double().numpy(),
        1e-6 if pair[0].dtype != torch.bfloat16 else 1e-2,
        equal_nan=True,
    )


@settings(deadline=None, derandomize=True)
@given(pairs(), st.sampled_from(["abs", "neg", "square"]))
def test_functions_of_each_element(pair, name):
    if pair[0].dtype == torch.bool and name in ("neg", "abs", "square"):
        return  # refused by PyTorch, or of no use
    theirs, mine = both(lambda lib, x: (getattr(lib, name)(x), getattr(x, name)()), pair)
    assert mine == theirs


@settings(deadline=None, derandomize=True)
@given(pairs())
def test_what_is_finite(pair):
    for name in ("isnan", "isfinite"):
        theirs, mine = (
            getattr(lib, name)(tensor) for lib, tensor in zip((torch, tab), pair, strict=True)
        )
        assert mine.dtype is tab.bool and mine.tolist() == theirs.tolist()


@settings(deadline=None, derandomize=True)
@given(pairs(), st.sampled_from(["sqrt", "rsqrt", "reciprocal"]))
def test_roots_and_reciprocals(pair, name):
    """The last bit depends on the number of elements: PyTorch takes vector instructions for
    many."""
    theirs, mine = (getattr(tensor, name)() for tensor in pair)
    assert describe(mine)[:-1] == describe(theirs)[:-1]
    last = {torch.float16: 2e-3, torch.bfloat16: 1e-2, torch.float64: 1e-15}.get(
        pair[0].dtype, 3e-7
    )
    assert np.allclose(mine.double().numpy(), theirs.double().numpy(), last, 1e-7, equal_nan=True)


@settings(deadline=None, derandomize=True)
@given(pairs(), pairs(), operations)
def test_in_place_operations_keep_memory_and_dtype(first, second, name):
    if name not in ("add", "mul", "div") or 0 in first[0].stride():
        return

    def change(lib, a, b):
        before, pointer = a.clone(), a.data_ptr()
        changed = getattr(a, f"{name}_")(b)
        assert changed is a and a.data_ptr() == pointer
        kept = a.clone()
        a.copy_(before)
        return kept

    theirs, mine = both(change, first, second)
    assert mine == theirs


@settings(deadline=None, derandomize=True)
@given(pairs(), st.data())
def test_clamp_and_where(pair, data):
    low = data.draw(st.none() | st.sampled_from([0, -0.5, 2]))
    high = data.draw(st.sampled_from([3, 2.5]))
    if pair[0].dtype != torch.bool:
        theirs, mine = both(lambda lib, x: x.clamp(min=low, max=high), pair)
        assert mine == theirs
    theirs, mine = both(lambda lib, x: (lib.where(x > 1, x, 0), lib.where(x > 1, x, lib.nan)), pair)
    assert mine == theirs


# ---- sums over dimensions


@settings(deadline=None, derandomize=True)
@given(pairs(), st.sampled_from(["sum", "mean", "amax", "min", "all", "any"]), st.data())
def test_reductions_have_the_dtype_and_shape_and_nearly_the_numbers(pair, name, data):
    rank = pair[0].ndim
    dim = data.draw(st.none() | st.integers(-rank, max(rank - 1, 0)))
    keepdim = data.draw(st.booleans())
    arguments = {} if dim is None or name == "min" else {"dim": dim, "keepdim": keepdim}
    name = "max" if name == "amax" and not arguments else name
    try:
        theirs = getattr(pair[0], name)(**arguments)
    except (RuntimeError, IndexError):
        with pytest.raises((RuntimeError, ValueError, IndexError)):
            getattr(pair[1], name)(**arguments)
        return
    mine = getattr(pair[1], name)(**arguments)
    assert describe(mine)[:-1] == describe(theirs)[:-1]
    near = {torch.float16: 1e-3, torch.bfloat16: 1e-2}.get(pair[0].dtype, 1e-6)
    assert np.allclose(mine.double().numpy(), theirs.double().numpy(), near, 1e-4, equal_nan=True)


@settings(deadline=None, derandomize=True)
@given(
    pairs(kinds=st.sampled_from(FLOATS), sizes=st.just((3, 4))),
    st.none() | st.integers(-2, 1),
    st.sampled_from([0, 1]),
    st.booleans(),
)
def test_variances(pair, dim, correction, keepdim):
    for name in ("var", "std"):
        arguments = {"correction": correction, "dim": dim, "keepdim": keepdim}
        # numbers up to 9: the variance of the largest ones is nothing but rounding
        theirs, mine = (
            getattr(tensor.isfinite().to(tensor.dtype) + tensor.abs().clamp(max=9), name)(
                **arguments
            )
            for tensor in pair
        )
        assert describe(mine)[:-1] == describe(theirs)[:-1]
        last = {torch.float16: 1e-3, torch.bfloat16: 1e-2}.get(pair[0].dtype, 2e-7)
        assert np.allclose(
            mine.double().numpy(), theirs.double().numpy(), last, 1e-7, equal_nan=True
        )


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("eps", [None, 1e-5, 0.5])
def test_norms(kind, eps):
    for seed in range(20):
        x = np.random.default_rng(seed).normal(3, size=(4, 2, 6))
        w = np.random.default_rng(seed).normal(size=(2, 6))
        made = []
        for lib in (torch, tab):
            a, b = (lib.tensor(v, dtype=getattr(lib, kind)) for v in (x, w))
            F, extra = lib.nn.functional, {} if eps is None else {"eps": eps}
            results = (
                F.layer_norm(a, (2, 6), b, b, **extra),
                F.rms_norm(a, (6,), **extra),
                F.pad(b, (1, 2)),
            )
            made.append([r.double().numpy() for r in results])
            assert [(str(r.dtype), r.stride()) for r in results] == [
                (f"torch.{kind}", s) for s in ((12, 6, 1), (12, 6, 1), (9, 1))
            ]
        near = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-6, "float64": 1e-12}[kind]
        for theirs, mine in zip(*made, strict=True):
            assert np.allclose(mine, theirs, near, near)


# ---- printing


@settings(deadline=None, derandomize=True, max_examples=200)
@given(pairs(sizes=shapes | st.sampled_from([(1001,), (30, 40), (7, 200), (2, 3, 4)])))
def test_a_tensor_prints_as_pytorch_prints_it(pair):
    assert repr(pair[1]) == repr(pair[0]) and str(pair[1]) == str(pair[0])
    if not pair[0].ndim:
        assert f"{pair[1]}" == f"{pair[0]}" and f"{pair[1]:8}" == f"{pair[0]:8}"


@settings(deadline=None, derandomize=True)
@given(st.lists(st.floats(width=32), min_size=1, max_size=30), st.sampled_from([1.0, 1e-6, 1e3]))
def test_numbers_of_any_size_print_alike(numbers, scale):
    array = (np.array(numbers) * scale).astype(np.float32)
    assert repr(tab.from_numpy(array)) == repr(torch.from_numpy(array))


# ---- random numbers


@settings(deadline=None, derandomize=True)
@given(
    st.integers(0, 2**40),
    st.lists(st.sampled_from([1, 3, 5, 15, 16, 17, 31, 33, 100, (4, 5), (8, 2)]), max_size=4),
    st.booleans(),
)
def test_random_numbers_are_those_of_pytorch(seed, sizes, wide):
    made = []
    for lib in (torch, tab):
        generator, kind = lib.Generator().manual_seed(seed), lib.float64 if wide else lib.float32
        drawn = [lib.randn(size, generator=generator, dtype=kind) for size in sizes]
        drawn += [lib.rand(size, generator=generator, dtype=kind) for size in sizes]
        drawn += [
            lib.randint(high, (3,), generator=generator) for high in (7, 2**28 - 1, 2**28, 2**40)
        ]
        drawn += [lib.randperm(20, generator=generator), lib.randn(2, generator=generator)]
        made.append([tensor.numpy() for tensor in drawn])
    for theirs, mine in zip(*made, strict=True):
        last = 1e-6 if theirs.dtype == np.float32 else 4e-15
        assert theirs.dtype == mine.dtype and np.allclose(mine, theirs, last, last)


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"),
    reason="PyTorch has other bits here",
)
def test_normal_numbers_in_fp32_are_those_of_pytorch_bit_for_bit():
    want, got = (
        lib.randn(2**16 + 5, generator=lib.Generator().manual_seed(1)).numpy()
        for lib in (torch, tab)
    )
    assert want.tobytes() == got.tobytes()


def test_a_copied_dtype_is_the_same():
    assert copy.deepcopy(tab.bfloat16) is tab.bfloat16


def test_a_generator_without_a_seed_has_pytorchs():
    assert (
        tab.randn(3, generator=tab.Generator()).tolist()
        == torch.randn(3, generator=torch.Generator()).tolist()
    )


def test_what_is_drawn_without_a_generator_differs():
    assert tab.randn(20).tolist() != tab.randn(20).tolist()
    assert re.match(r"tensor\(", repr(tab.rand(2)))

"""Constructs that touch memory, random numbers, and what only talks to the compiler. See
constructs.py."""

from __future__ import annotations

from collections.abc import Iterator

from constructs import I32, Construct, values

_M32 = 0xFFFFFFFF


def _philox(seed: int, offset: int) -> list[int]:
    """Philox 4x32 with 10 rounds, as Salmon et al. 2011 give it."""
    c, k = [offset, 0, 0, 0], [seed & _M32, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & _M32, (a >> 32) ^ c[3] ^ k[1], a & _M32]
        k = [(k[0] + 0x9E3779B9) & _M32, (k[1] + 0xBB67AE85) & _M32]
    return c


def _loads() -> Iterator[Construct]:
    yield Construct(
        "tl.load: masked",
        "result = tl.load(i32_ptr + lanes, mask=lanes < 3, other=-1) + i32 * 0",
        [*I32[:3], *[-1] * 5],
    )
    yield Construct(
        "tl.load: other of another dtype",
        "result = tl.load(i32_ptr + lanes, mask=lanes < 3, other=2.0) + i32 * 0",
        [*I32[:3], *[2] * 5],
    )
    yield Construct(
        "tl.load: other of a number is 0",
        "result = tl.load(i32_ptr, mask=n > 9, other=0) + tl.max(i32, 0) * 0",
        0,
    )
    yield Construct(
        "tl.load: a volatile one", "result = tl.load(i32_ptr + lanes, volatile=True) + i32 * 0", I32
    )
    yield Construct(
        "tl.load: a cache modifier",
        "result = tl.load(i32_ptr + lanes, cache_modifier='.cg') + i32 * 0",
        I32,
    )
    yield Construct(
        "tl.load: an eviction policy",
        "result = tl.load(i32_ptr + lanes, eviction_policy='evict_last') + i32 * 0",
        I32,
    )
    yield Construct(
        "tl.load: of a block of masks",
        "x = tl.load(x_ptr + lanes)\nresult = x",
        [True, False] * 4,
        "bool",
        extra={"x_ptr": ("bool", [1, 0] * 4)},
    )
    yield Construct(
        "tl.load: other without mask", "result = tl.load(i32_ptr + lanes, other=0) + i32", None
    )
    yield Construct("tl.load: of no pointer", "result = tl.load(i32)", None)
    yield Construct(
        "pointer + int64",
        "result = tl.load(i32_ptr + (big - big + 2)) + tl.max(i32, 0) * 0",
        I32[2],
    )
    yield Construct(
        "pointer - offset", "result = tl.load((i32_ptr + 3) - 1) + tl.max(i32, 0) * 0", I32[2]
    )
    yield Construct("pointer + float", "result = tl.load(i32_ptr + 1.5)+ i32", None)
    yield Construct(
        "pointer to another dtype",
        "p = x_ptr.to(tl.pointer_type(tl.int32))\nresult = tl.load(p)",
        0x3F800000,
        extra={"x_ptr": ("float32", [1.0])},
    )
    yield Construct(
        "pointer to an integer",
        "result = ((x_ptr + 1).to(tl.int64) - x_ptr.to(tl.int64)).to(tl.int32)",
        4,
        extra={"x_ptr": ("float32", [1.0, 2.0])},
    )
    yield Construct("element_ty", "result = n.to(out_ptr.dtype.element_ty)", 5)
    yield Construct(
        "tl.store: masked",
        "tl.store(out_ptr + lanes, lanes, mask=lanes < 3)\ntl.store(out_ptr + 3 + lanes, 9,"
        " mask=lanes < 5)",
        [0, 1, 2, 9, 9, 9, 9, 9],
        stores=True,
    )
    yield Construct(
        "tl.store: wraps",
        "tl.store(out_ptr + lanes, lanes + 254)",
        [(i + 254) % 256 for i in range(8)],
        "uint8",
        stores=True,
    )
    yield Construct("x.store", "(out_ptr + lanes).store(lanes)", list(range(8)), stores=True)
    yield Construct(
        "tl.store: a cache modifier",
        "tl.store(out_ptr + lanes, lanes, cache_modifier='.cs')",
        list(range(8)),
        stores=True,
    )
    yield Construct(
        "tl.store: an eviction policy",
        "tl.store(out_ptr + lanes, lanes, eviction_policy='evict_first')",
        list(range(8)),
        stores=True,
    )
    yield Construct(
        "tl.debug_barrier",
        "tl.store(out_ptr + lanes, lanes)\ntl.debug_barrier()\nx = tl.load(out_ptr +"
        " lanes)\ntl.debug_barrier()\ntl.store(out_ptr + lanes, x + 1)",
        list(range(1, 9)),
        stores=True,
    )


def _atomics() -> Iterator[Construct]:
    seven = {"x_ptr": ("int32", [7, 7, 7, 7])}
    four = "at = x_ptr + tl.arange(0, 4)\n"
    after = "\ntl.debug_barrier()\nresult = old * 1000 + tl.load(at)"
    for name, want in (
        ("add", 7012),
        ("max", 7007),
        ("min", 7005),
        ("and", 7005),
        ("or", 7007),
        ("xor", 7002),
        ("xchg", 7005),
    ):
        yield Construct(
            f"tl.atomic_{name}",
            f"{four}old = tl.atomic_{name}(at, n){after}",
            [want] * 4,
            extra=seven,
        )
        yield Construct(
            f"x.atomic_{name}", f"{four}old = at.atomic_{name}(n){after}", [want] * 4, extra=seven
        )
        yield Construct(
            f"tl.atomic_{name}: masked, relaxed",
            f"{four}old = tl.atomic_{name}(at, n, mask=tl.arange(0, 4) < 1, sem='relaxed', "
            f"scope='cta')\n"
            "tl.debug_barrier()\nresult = tl.load(at)", [want % 1000, 7, 7, 7], extra=seven,
        )  # fmt: skip
    yield Construct(
        "tl.atomic_cas",
        f"{four}old = tl.atomic_cas(at, tl.full([4], 7, tl.int32), tl.full([4], 9,"
        f" tl.int32)){after}",
        [7009] * 4,
        extra=seven,
    )
    yield Construct(
        "tl.atomic_cas: another is there",
        f"{four}old = tl.atomic_cas(at, tl.full([4], 5, tl.int32), tl.full([4], 9,"
        f" tl.int32)){after}",
        [7007] * 4,
        extra=seven,
    )
    yield Construct(
        "tl.atomic_cas of a block with a number",
        f"{four}old = tl.atomic_cas(at, 7, 9)\nresult = old",
        None,
        extra=seven,
    )
    yield Construct(
        "x.atomic_cas of one",
        "old = x_ptr.atomic_cas(7, 9, sem='acquire', scope='gpu')\nresult = old",
        7,
        extra=seven,
    )
    yield Construct(
        "tl.atomic_add: lanes at one place",
        "tl.atomic_add(x_ptr + lanes * 0, 1)\ntl.debug_barrier()\nresult = tl.load(x_ptr)",
        15,
        extra=seven,
    )
    for kind in ("float16", "bfloat16", "float32", "float64", "int64", "uint32"):
        yield Construct(
            f"tl.atomic_add of {kind}",
            "old = tl.atomic_add(x_ptr + lanes * 0, 1)\ntl.debug_barrier()\nresult = "
            "tl.load(x_ptr)", 11, kind,
            extra={"x_ptr": (kind, [3])},
        )  # fmt: skip
    yield Construct(
        "tl.atomic_max of fp32",
        f"{four}old = tl.atomic_max(at, -1.0)\ntl.debug_barrier()\nresult = tl.load(at)",
        [3.0, -1.0, 0.0, -0.5],
        "float32",
        extra={"x_ptr": ("float32", [3.0, -2.0, 0.0, -0.5])},
    )
    yield Construct(
        "tl.atomic_min of fp32",
        f"{four}old = tl.atomic_min(at, -1.0)\ntl.debug_barrier()\nresult = tl.load(at)",
        [-1.0, -2.0, -1.0, -1.0],
        "float32",
        extra={"x_ptr": ("float32", [3.0, -2.0, 0.0, -0.5])},
    )
    yield Construct(
        "tl.atomic_max of fp16",
        f"{four}old = tl.atomic_max(at, 1.0)\nresult = old",
        None,
        extra={"x_ptr": ("float16", [3.0] * 4)},
    )
    yield Construct(
        "tl.atomic_add: a wrong order",
        f"{four}old = tl.atomic_add(at, 1, sem='seq_cst')\nresult = old",
        None,
        extra=seven,
    )
    yield Construct(
        "tl.atomic_add: a wrong scope",
        f"{four}old = tl.atomic_add(at, 1, scope='all')\nresult = old",
        None,
        extra=seven,
    )


def _blocks() -> Iterator[Construct]:
    rows = {"x_ptr": ("float32", [float(v) for v in range(32)])}
    made = (
        "p = tl.make_block_ptr(x_ptr, shape=(4, 6), strides=(8, 1), offsets=(0, 4), block_shape=(4,"
        " 4), order=(1, 0))\n"
    )
    yield Construct(
        "tl.make_block_ptr",
        f"{made}result = tl.load(p, boundary_check=(0, 1), padding_option='zero')",
        [8.0 * i + 4 + j if j < 2 else 0.0 for i in range(4) for j in range(4)],
        "float32",
        extra=rows,
    )
    yield Construct(
        "tl.advance",
        f"{made}p = tl.advance(p, (2, -4))\nresult = tl.load(p, boundary_check=(0,),"
        " padding_option='zero')",
        [8.0 * i + j if i < 4 else 0.0 for i in range(2, 6) for j in range(4)],
        "float32",
        extra=rows,
    )
    yield Construct(
        "x.advance, x.store of a block pointer",
        f"{made}p = p.advance((0, -4))\ntl.store(p, tl.zeros([4, 4], tl.float32) +"
        " 1.0)\ntl.debug_barrier()\nresult = tl.load(x_ptr + tl.arange(0, 8))",
        [1.0] * 4 + [4.0, 5.0, 6.0, 7.0],
        "float32",
        extra=rows,
    )
    desc = (
        "d = tl.make_tensor_descriptor(x_ptr, shape=[4, 8], strides=[8, 1], block_shape=[2, 4])\n"
    )
    want = [8.0 * i + j for i in (3, 4) for j in range(4, 8)]
    yield Construct(
        "tl.make_tensor_descriptor",
        f"{desc}result = d.load([3, 4])",
        [v if v < 32 else 0.0 for v in want],
        "float32",
        extra=rows,
        only="hopper",
    )
    yield Construct(
        "tl.load_tensor_descriptor, tl.store_tensor_descriptor",
        f"{desc}x = tl.load_tensor_descriptor(d, [0, 0])\ntl.store_tensor_descriptor(d, [2, 4],"
        " x)\ntl.debug_barrier()\nresult = tl.load(x_ptr + 16 + tl.arange(0, 8))",
        [16.0, 17.0, 18.0, 19.0, 0.0, 1.0, 2.0, 3.0],
        "float32",
        extra=rows,
        only="hopper",
    )


def _randoms() -> Iterator[Construct]:
    counted = [_philox(5, i) for i in range(8)]
    first = [c[0] for c in counted]

    def uniform(x: int) -> float:
        x = x - 2**32 if x >= 2**31 else x
        return float((-x - 1 if x < 0 else x) * 4.6566127342e-10)

    yield Construct(
        "tl.philox",
        "a, b, c, d = tl.philox(n, lanes.to(tl.uint32), 0, 0, 0)\nresult = a ^ b ^ c ^ d",
        [c[0] ^ c[1] ^ c[2] ^ c[3] for c in counted],
        "uint32",
    )
    yield Construct("tl.randint", "result = tl.randint(n, lanes)", first, "uint32")
    yield Construct(
        "tl.randint4x",
        "a, b, c, d = tl.randint4x(n, lanes)\nresult = d",
        [c[3] for c in counted],
        "uint32",
    )
    yield Construct(
        "tl.rand", "result = tl.rand(n, lanes)", [uniform(x) for x in first], "float32", near=1e-6
    )
    yield Construct(
        "tl.rand4x",
        "a, b, c, d = tl.rand4x(n, lanes)\nresult = b",
        [uniform(c[1]) for c in counted],
        "float32",
        near=1e-6,
    )
    yield Construct(
        "tl.uint_to_uniform_float",
        "result = tl.uint_to_uniform_float(u32)",
        [uniform(v) for v in values("u32")],
        "float32",
        near=1e-6,
    )
    normal = [_normal(uniform(c[0]), uniform(c[1])) for c in counted]
    yield Construct("tl.randn", "result = tl.randn(n, lanes)", normal, "float32", near=1e-4)
    yield Construct(
        "tl.randn4x", "a, b, c, d = tl.randn4x(n, lanes)\nresult = a", normal, "float32", near=1e-4
    )
    yield Construct(
        "tl.pair_uniform_to_normal",
        "a, b = tl.pair_uniform_to_normal(eps, half)\nresult = a",
        _normal(0.1, 0.5),
        "float32",
        near=1e-5,
    )
    yield Construct(
        "tl.philox_impl",
        "z = (lanes * 0).to(tl.uint32)\na, b, c, d = tl.philox_impl(lanes.to(tl.uint32), z, z, z, z"
        " + 5, z)\nresult = a",
        first,
        "uint32",
    )


def _normal(u1: float, u2: float) -> float:
    import math

    return math.sqrt(-2.0 * math.log(max(1e-7, u1))) * math.cos(6.283185307179586 * u2)


def _talk() -> Iterator[Construct]:
    yield Construct("tl.static_assert", "tl.static_assert(K == 4, 'K')\nresult = n", 5)
    yield Construct(
        "tl.static_assert: fails", "tl.static_assert(K == 5, 'K is another')\nresult = n", None
    )
    yield Construct("tl.static_print", "tl.static_print('K', K)\nresult = n", 5)
    yield Construct("tl.device_print", "tl.device_print('n', n)\nresult = n", 5)
    yield Construct("tl.device_assert", "tl.device_assert(n > 100, 'not met')\nresult = n", 5)
    yield Construct("tl.constexpr in an expression", "result = n + tl.constexpr(3)", 8)
    yield Construct(
        "tl.condition",
        "result = n\nwhile tl.condition(result < 100, disable_licm=True):\n    result *= 2",
        160,
    )
    yield Construct(
        "dtypes are compared", "result = n\nif n.dtype == tl.int32:\n    result = n + 1", 6
    )
    yield Construct(
        "dtypes have properties",
        "result = n\nif n.dtype.is_int() and n.dtype.primitive_bitwidth == 32:\n    result = n + 1",
        6,
    )
    yield Construct("a name that nothing has", "result = n + nowhere", None)
    yield Construct("a method that nothing has", "result = n.nothing()", None)
    yield Construct("a method of a constant", "result = K.to(tl.int64)", None)


def memory() -> Iterator[Construct]:
    for make in (_loads, _atomics, _blocks, _randoms, _talk):
        yield from make()

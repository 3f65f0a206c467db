"""Lesson 09: the bytes that a chain of kernels moves through HBM, against one fused kernel, as
plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.base.words import list_words

ITEMSIZE = {"fp16": 2, "bf16": 2, "fp32": 4}
CASES = {"add": N_("add, then rms_norm"), "eager": N_("rms_norm, op by op")}
L2_BYTES = 50e6  # H100
LAUNCH_US = 10.0  # microseconds per launch, as lesson 06 assumes
ROWS = (1, 16, 128, 1024, 4096, 16384, 65536)
COLUMNS = (1, 16, 256, 1024, 4096, 8192, 32768)


@dataclass(frozen=True)
class Traffic:
    """One tensor that a launch reads or writes once: M x N elements if ``whole``, else one number
    per row."""

    tensor: str  # its name in the operation
    write: bool
    whole: bool
    itemsize: int


@dataclass(frozen=True)
class LaunchTraffic:
    """One kernel launch and the tensors that it reads and writes."""

    name: str
    traffic: tuple[Traffic, ...]

    def bytes(self, m: int, n: int) -> int:
        return sum(part.itemsize * (m * n if part.whole else m) for part in self.traffic)


@dataclass(frozen=True)
class Comparison:
    """The launches that compute one result for M x N elements: several unfused ones, and one fused
    launch."""

    m: int
    n: int
    unfused: tuple[LaunchTraffic, ...]
    fused: tuple[LaunchTraffic, ...]

    @property
    def unfused_bytes(self) -> int:
        return sum(launch.bytes(self.m, self.n) for launch in self.unfused)

    @property
    def fused_bytes(self) -> int:
        return sum(launch.bytes(self.m, self.n) for launch in self.fused)

    @property
    def ratio(self) -> float:
        return self.fused_bytes / self.unfused_bytes


def model(case: str, m: int, n: int, dtype: str, upcast: bool = True) -> Comparison:
    """Return the tensors that each launch reads and writes, for the unfused launches and the fused
    one.

    Every tensor of a launch crosses HBM once, and nothing waits in L2 for the next launch. w (N
    elements, shared by all rows) and the saved rstd of a fused kernel (M elements) are left out on
    both sides; per-row intermediates that an op-by-op chain writes and reads back (M elements) are
    counted.

    Args:
        case: "add": total = x + residual, then rms_norm of the total, both results kept: 5 M N
            against 4 M N elements. "eager": pow, mean, add eps, rsqrt, mul, mul against one kernel
            of 2 M N.
        dtype: fp16, bf16 or fp32, of x, residual, total and y.
        upcast: "eager" only: x is cast to fp32 first and back before w, as model code does. No
            effect for fp32.

    Raises: CourseError if the case or dtype is unknown or a size is below 1.
    """
    if case not in CASES or dtype not in ITEMSIZE or m < 1 or n < 1:
        words = _(
            "bytes_moved knows the cases {cases}, the dtypes {dtypes} and sizes from 1; "
            "you asked for case={case!r}, M={m}, N={n}, dtype={dtype!r}."
        )
        raise CourseError(
            words.format(
                cases=list_words(CASES),
                dtypes=list_words(ITEMSIZE),
                case=case,
                m=m,
                n=n,
                dtype=dtype,
            )
        )
    tensors = _Tensors(ITEMSIZE[dtype])
    if case == "add":
        unfused = (
            LaunchTraffic(
                "add", (tensors.read("x"), tensors.read("residual"), tensors.write("total"))
            ),
            LaunchTraffic("rms_norm", (tensors.read("total"), tensors.write("y"))),
        )
        fused = (LaunchTraffic("add + rms_norm", (*unfused[0].traffic, tensors.write("y"))),)
    else:
        unfused = _make_eager_chain(ITEMSIZE[dtype], upcast)
        fused = (LaunchTraffic("rms_norm", (tensors.read("x"), tensors.write("y"))),)
    return Comparison(m, n, unfused, fused)


def _make_eager_chain(size: int, upcast: bool) -> tuple[LaunchTraffic, ...]:
    casts = upcast and size != 4
    low = _Tensors(size)
    high = _Tensors(4 if casts else size)
    row = _Tensors(4 if casts else size, whole=False)
    chain = [
        LaunchTraffic("pow", (high.read("x"), high.write("x^2"))),
        LaunchTraffic("mean", (high.read("x^2"), row.write("ms"))),
        LaunchTraffic("add eps", (row.read("ms"), row.write("ms"))),
        LaunchTraffic("rsqrt", (row.read("ms"), row.write("rstd"))),
        LaunchTraffic("mul rstd", (high.read("x"), row.read("rstd"), high.write("xhat"))),
        LaunchTraffic("mul w", (low.read("xhat"), low.write("y"))),
    ]
    if casts:
        chain.insert(0, LaunchTraffic(N_("cast up"), (low.read("x"), high.write("x"))))
        chain.insert(-1, LaunchTraffic(N_("cast down"), (high.read("xhat"), low.write("xhat"))))
    return tuple(chain)


@dataclass(frozen=True)
class _Tensors:
    itemsize: int
    whole: bool = True

    def read(self, tensor: str) -> Traffic:
        return Traffic(tensor, False, self.whole, self.itemsize)

    def write(self, tensor: str) -> Traffic:
        return Traffic(tensor, True, self.whole, self.itemsize)


def make_data(m: int, n: int, dtype: str, case: str | None = None) -> dict[str, Any]:
    """Return the launches of one case or of all, for every dtype, with M = N = 1; the browser
    multiplies by M and N.

    Raises: CourseError if a size is below 1, or the case or dtype is unknown.
    """
    first_case = case or next(iter(CASES))
    model(first_case, m, n, dtype)
    cases = {name: _(words) for name, words in CASES.items() if case in (None, name)}
    chains = {}
    for case in cases:
        for kind in ITEMSIZE:
            for upcast in (False, True):
                launches = model(case, 1, 1, kind, upcast)
                chains[f"{case}|{kind}|{str(upcast).lower()}"] = {
                    "separate": [
                        asdict(launch) | {"name": _(launch.name)} for launch in launches.unfused
                    ],
                    "fused": [asdict(launch) for launch in launches.fused],
                }
    return {
        "start": {"kind": first_case, "m": m, "n": n, "dtype": dtype, "upcast": True,
            "bandwidth": 3000, "at": 0},
        "cases": cases, "dtypes": ITEMSIZE, "rows": sorted({*ROWS, m}),
        "columns": sorted({*COLUMNS, n}),
        "chains": chains, "l2_bytes": L2_BYTES, "launch_us": LAUNCH_US,
    }  # fmt: skip

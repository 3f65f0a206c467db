"""The compiled-kernel explorer: what it says comes from the compiler, and it never waits in the kernel's way."""

from __future__ import annotations

import base64
import io
import threading
import time

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from PIL import Image

from course_lib import compiler
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.compiler import CompileError, CompileReport, KernelSource, Lines, Pointer, residency
from course_lib.lessons import explore, kernel_explorer, learners_kernel, style
from course_lib.lessons.compiled_kernel import model as explorer_model
from course_lib.lessons.compiled_kernel import widget as explorer
from course_lib.lessons.compiled_kernel.figure import draw
from course_lib.lessons.compiled_kernel.model import (
    WARPS,
    Choice,
    Column,
    Reports,
    Subject,
    View,
    bits,
    code_of,
    describe,
    title,
)
from course_lib.lessons.compiled_kernel.widget import code_panel, listed
from course_lib.lessons.live import VIEW, Picture

PNG = b"\x89PNG\r\n\x1a\n"
SOURCE = KernelSource("def k(x):\n    y = tl.load(x)\n    tl.store(x, y)", "k", "ex.py", 11)


def report(num_warps=4, registers=40, spill=0, **changes) -> CompileReport:
    made = {
        "kernel": "k", "arch": "sm_90", "num_warps": num_warps, "registers": registers, "spill_bytes": spill, "shared_bytes": 64,
        "loads": {16: 2}, "stores": {4: 1, 16: 1}, "ptx": "mov;\nld.global; // comment <1>\nadd;\nst.global;", "sass": "LDG\nFADD\nSTG\n",
        "ttir": "", "ttgir": "", "lines": {12: Lines((2, 3), (1,)), 13: Lines((4,), (3,))}, "seconds": 0.1,
    }  # fmt: skip
    return CompileReport(**made | changes)


def view(reports: dict[int, CompileReport | str | None], num_warps=4) -> View:
    columns = [Column(w, None, made) if isinstance(made, str) else Column(w, made) for w, made in reports.items()]
    return View(Choice("k", 1024, num_warps, "fp16", "sm_90"), "rows", tuple(columns))


# ---- the model's words


@pytest.mark.parametrize(
    ("spills", "words"),
    [
        ((900, 12, 0, 0, 0, 0), "BLOCK 1024 spills on 1 and 2 warps, and not on 4 to 32 warps"),
        ((900, 0, 0, 0, 0, 8), "BLOCK 1024 spills on 1 and 32 warps, and not on 2 to 16 warps"),
        ((0, 0, 0, 0, 0, 8), "BLOCK 1024 spills on 32 warps, and not on 1 to 16 warps"),
        ((1, 0, 1, 0, 1, 0), "BLOCK 1024 spills on 1, 4 and 16 warps, and not on 2, 8 and 32 warps"),
        ((1, 1, 1, 1, 1, 1), "BLOCK 1024 spills on every number of warps tried"),
        ((0, 0, 0, 0, 0, 0), "More warps, fewer registers: 90 a thread on 1 warp, 40 on 32"),
    ],
)
def test_the_title_says_what_the_reports_say(spills, words):
    made = {w: report(w, 90 - 10 * i, spill) for i, (w, spill) in enumerate(zip(WARPS, spills, strict=True))}
    assert title(view(made)) == words


def test_the_words_for_what_is_not_there():
    assert title(view(dict.fromkeys(WARPS))) == "The compiler is at work"
    refused = view({**{w: report(w) for w in WARPS}, 4: "ex.py, line 3: `v` is not defined.\n    y = v"})
    assert title(refused) == "The compiler gives no kernel for 4 warps"
    assert describe(refused).endswith("ex.py, line 3: `v` is not defined. y = v")
    some = view({**{w: report(w) for w in WARPS}, 1: None})
    assert "The other columns are being compiled." in describe(some) and not some.complete


def test_the_caption_names_the_limit():
    held = {w: report(w, 128 if w == 4 else 40) for w in WARPS}
    assert "128 registers a thread, nothing is spilled, 64 bytes of shared memory" in describe(view(held))
    assert "16 of 64 warps of a multiprocessor are resident; the limit is registers." in describe(view(held))
    assert "move 128 bits a thread, stores 32 and 128." in describe(view(held))
    free = describe(view({w: report(w, 32, shared_bytes=0) for w in WARPS}))
    assert "64 of 64 warps of a multiprocessor are resident: every place is taken." in free
    assert "No program fits" in describe(view({w: report(w, 128) for w in WARPS}, 32))
    assert bits({}) == bits(None) == "-" and bits({2: 1, 16: 3}) == "16 and 128"


def test_the_limit_is_the_resource_with_least_room():
    assert residency("sm_90", 255, 0, 8).limited_by == ("registers",)
    assert residency("sm_90", 16, 0, 1).limited_by == ("programs",)
    assert residency("sm_90", 32, 100 << 10, 4).limited_by == ("shared memory",)
    assert residency("sm_90", 32, 0, 4).limited_by == ()
    assert residency("sm_120", 33, 0, 32).limited_by == ("warps", "registers")


def test_lines_lead_to_code():
    column = Column(4, report())
    assert code_of(column, [12]) == ([(2, "ld.global;"), (3, "add;")], [(1, "LDG")])
    assert code_of(column, [13, 12]) == ([(2, "ld.global;"), (3, "add;"), (4, "st.global;")], [(1, "LDG"), (3, "STG")])
    assert code_of(column, [11]) == ([], []) == code_of(Column(4, None), [12])
    rows = listed(SOURCE, column)
    assert [number for number, _ in rows] == [11, 12, 13]
    assert rows[1][1].split() == ["12", "2", "1", "y", "=", "tl.load(x)"] and "·" in rows[0][1]


def test_a_panel_shows_gaps_and_escapes():
    text = code_panel("SASS", [(1, "@P <a>"), (3, "STG")], [12], Column(4, report()))
    assert (
        "&lt;a&gt;" in text
        and "⋮" in text
        and "SASS of line 12: 2 SASS instructions" in text
        and 'tabindex="0"' in text
    )
    assert "and 100 more instructions" in code_panel(
        "PTX", [(n, "mov") for n in range(1, 501)], [1, 2], Column(4, report())
    )
    assert "No instruction carries this line" in code_panel("PTX", [], [11], Column(4, report()))
    assert "Select a line" in code_panel("PTX", [], [], Column(4, report()))
    assert "compiling" in code_panel("PTX", [], [12], Column(4, None))
    assert "no report" in code_panel("PTX", [], [12], Column(4, None, "refused"))


@pytest.mark.parametrize(
    "made",
    [
        {
            w: report(w, 255, 123456, loads={1: 1000, 2: 1000, 4: 1000, 8: 1000, 16: 1000}, shared_bytes=232448)
            for w in WARPS
        },
        dict.fromkeys(WARPS),
        dict.fromkeys(WARPS, "ex.py, line 3: no"),
        {w: report(w, loads=None, stores=None, sass=None) for w in WARPS},
        {w: report(w, loads={}, stores={}) for w in WARPS},
    ],
)
def test_every_extreme_is_drawn_inside_the_figure(made):
    pixels = np.asarray(Image.open(io.BytesIO(draw(view(made, 32)).png)).convert("L"), dtype=int)
    edges = np.concatenate([pixels[:4].ravel(), pixels[-4:].ravel(), pixels[:, :4].ravel(), pixels[:, -4:].ravel()])
    assert edges.min() > 235 and pixels.shape[1] == round(style.WIDTH * style.DPI)


# ---- asking the compiler


class Compiler:
    """Stands in for compile_report: counts, can be slow, and refuses what it is told to. Pictures are left out, to be quick."""

    def __init__(self, monkeypatch, drawn=False):
        if not drawn:
            monkeypatch.setattr(explorer, "draw", lambda view: Picture(PNG, title(view), describe(view)))
        self.asked, self.refuses, self.gate = [], {}, threading.Event()
        self.gate.set()
        monkeypatch.setattr(explorer_model, "compile_report", self)

    def __call__(self, kernel, arguments, constexprs, *, num_warps, arch, limit):
        self.gate.wait(5)
        self.asked.append((constexprs.get("BLOCK"), num_warps, arch))
        if num_warps in self.refuses:
            raise self.refuses[num_warps]
        return report(num_warps, 128 // num_warps, arch=arch, lines={34: Lines((1,), (1,)), 35: Lines((2,), (2, 3))})


@triton.jit
def own_kernel(x_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n)
    tl.store(x_ptr + cols, x + 1, mask=cols < n)


def own(**options):
    return explore(own_kernel, [torch.zeros(100), 100], {"BLOCK": 128}, **options)


def test_each_report_is_asked_for_once(monkeypatch):
    stand_in = Compiler(monkeypatch)
    widget = own()
    assert sorted(stand_in.asked) == [(128, warps, "sm_90") for warps in WARPS]
    widget.controls["num_warps"].value = 16
    widget.controls["arch"].value = "sm_80"
    widget.settle()
    widget.reset()
    widget.settle()
    assert len(stand_in.asked) == 2 * len(WARPS) == len(set(stand_in.asked))
    assert stand_in.asked[len(WARPS)] == (128, 16, "sm_80")  # the chosen one comes first


def test_a_move_never_waits_for_the_compiler_and_the_last_one_counts(monkeypatch):
    stand_in = Compiler(monkeypatch)
    widget = own()
    stand_in.gate.clear()
    started = time.monotonic()
    for block in (32, 64, 256):
        widget.controls["block"].value = block
    assert time.monotonic() - started < 3 and "compiling ..." in widget.caption and "BLOCK = 256" in widget.caption
    stand_in.gate.set()
    widget.settle()
    assert "registers a thread" in widget.caption and "being compiled" not in widget.caption
    # what was passed over is not compiled, but for the one that was under way
    assert len([asked for asked in stand_in.asked if asked[0] in (32, 64)]) <= 1
    assert len([asked for asked in stand_in.asked if asked[0] == 256]) == len(WARPS)


def test_a_refusal_is_shown_in_its_own_words_and_kept(monkeypatch):
    stand_in = Compiler(monkeypatch)
    stand_in.refuses = dict.fromkeys(
        WARPS, CompileError("undefined_name", "`v` is not defined", "ex.py", 3, 1, "y = v")
    )
    widget = own()
    assert "ex.py, line 3: `v` is not defined. y = v" in widget.caption and bytes(widget._image.value).startswith(PNG)
    assert "no report" in widget._ptx.value and widget.code() == ([], [])
    widget.reset()
    widget.settle()
    assert len(stand_in.asked) == len(WARPS)  # a refusal stays one


def test_a_machine_without_the_compiler_says_so_and_asks_again_after_reset(monkeypatch):
    stand_in = Compiler(monkeypatch)
    stand_in.refuses = dict.fromkeys(
        WARPS, CourseError("the ptxas that comes with Triton cannot run on this machine. Install Triton again.")
    )
    widget = own()
    assert "the ptxas that comes with Triton cannot run on this machine. Install Triton again." in widget.caption
    stand_in.refuses = {}
    widget.reset()
    widget.settle()
    assert "registers a thread" in widget.caption


def test_a_fault_of_the_course_in_the_thread_is_not_lost(monkeypatch):
    stand_in = Compiler(monkeypatch)
    widget = own()
    stand_in.refuses = {8: ZeroDivisionError("ours")}
    widget.controls["block"].value = 64
    widget.settle()
    assert isinstance(widget.error, ZeroDivisionError) and "ZeroDivisionError: ours" in widget.caption
    with pytest.raises(ZeroDivisionError):
        own()


def test_a_changed_file_is_compiled_anew(monkeypatch):
    stand_in = Compiler(monkeypatch)
    texts = [KernelSource("def k(x):\n    return", "k", "ex.py")]
    reports = Reports([Subject("k", lambda: texts[0], lambda dtype, block: ([], {}), lambda dtype, block: "")])
    choice = Choice("k", 8, 4, "fp16", "sm_90")
    reports.make(choice)
    reports.make(choice)
    assert len(stand_in.asked) == 1 and reports.view(choice).chosen.report is not None
    texts[0] = KernelSource("def k(x):\n    return 1", "k", "ex.py")
    assert reports.view(choice).chosen.report is None and reports.missing(choice) == choice


def test_the_learners_file(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_EXERCISES", str(tmp_path))
    with pytest.raises(CourseError, match="there is no file"):
        learners_kernel("06a")
    from course_lib.authoring import exercises

    exercises.write(tmp_path)
    with pytest.raises(CourseError, match="still as the course wrote it"):
        learners_kernel("06a")
    Compiler(monkeypatch)
    widget = kernel_explorer()
    widget.controls["kernel"].value = "yours, 06a"
    widget.settle()
    assert "Do exercise 06a first" in widget.caption and widget.listing.options == ()
    solved = (paths.SOLUTIONS / "ex06a_layer_norm_forward.py").read_text()
    (tmp_path / "ex06a_layer_norm_forward.py").write_text(solved)
    widget.reset()
    widget.controls["kernel"].value = "yours, 06a"
    widget.settle()
    assert widget.error is None and any("def layer_norm_blocked_kernel" in label for label, _ in widget.listing.options)
    assert learners_kernel("6A").name == "layer_norm_blocked_kernel"


def test_the_selection_survives_a_move_and_starts_at_a_load(monkeypatch):
    Compiler(monkeypatch)
    widget = own()
    first = widget.reports.source(widget.choice).first_line
    assert {number for _, number in widget.listing.options} == set(range(first, first + 4))
    widget.listing.value = (first + 1,)
    widget.controls["num_warps"].value = 1
    widget.settle()
    assert widget.listing.value == (first + 1,)
    widget.listing.value = (first, first + 2)
    assert "PTX of 2 lines" in widget._ptx.value and (widget.line.value, widget.count.value) == (first, 3)
    widget.count.value = 2
    assert widget.listing.value == (first, first + 1)
    widget.line.value = first + 3
    assert (
        widget.listing.value == (first + 3,) and f"PTX of line {first + 3}" in widget._ptx.value
    )  # none behind the last


def test_the_bundle_is_a_complete_picture(monkeypatch):
    Compiler(monkeypatch, drawn=True)
    widget = own()
    data, metadata = widget._repr_mimebundle_()
    assert data[VIEW]["model_id"] == widget.model_id and base64.b64decode(data["image/png"]).startswith(PNG)
    alt = metadata["image/png"]["alt"]
    assert all(f"{warps}: {128 // warps} registers, 0 bytes spilled" in alt for warps in WARPS)
    assert "tensors of float32; BLOCK = 128" in alt


def test_dtype_is_a_control_where_the_arguments_depend_on_it(monkeypatch):
    Compiler(monkeypatch)
    assert "dtype" not in own().controls
    widget = explore(own_kernel, lambda dtype, block: [Pointer(dtype), block], {"BLOCK": 64}, blocks=(32, 64))
    widget.controls["dtype"].value = "fp32"
    widget.settle()
    assert "tensors of fp32; BLOCK = 64" in widget.caption and widget.controls["block"].options == (32, 64)
    assert explore(own_kernel, lambda dtype: [Pointer(dtype), 9], {"BLOCK": 64}).error is None
    fixed = explore(KernelSource("def k(x):\n    return", "k", "ex.py"), [3])
    assert fixed.controls["block"].disabled and fixed.error is None


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: kernel_explorer("mine"),
        lambda: kernel_explorer(BLOCK=100),
        lambda: kernel_explorer(num_warps=3),
        lambda: kernel_explorer(dtype="fp8"),
        lambda: kernel_explorer(arch="sm_70"),
        lambda: own(blocks=(8, 16)),
    ],
)
def test_wrong_arguments_are_refused_in_words(wrong):
    with pytest.raises(CourseError, match="the explorer takes"):
        wrong()
    with pytest.raises(TypeError, match="is no kernel"):
        compiler.source_text(3)


def test_the_numbers_are_the_compilers(monkeypatch):
    """One real compilation: what is shown is what compile_report says, and lines lead to the load and to the sum."""
    monkeypatch.setattr(explorer_model, "WARPS", (4,))
    widget = kernel_explorer("resident", BLOCK=256)
    made = widget.column.report
    assert f"{made.registers} registers a thread" in widget.caption and made.spill_bytes == 0
    source = {number: label for label, number in widget.listing.options}
    assert "tl.load(" in source[widget.listing.value[0]] or "tl.load(" in source[widget.listing.value[0] - 1]
    ptx, sass = widget.code()
    assert any("ld.global" in text for _, text in ptx) and any("LDG" in text for _, text in sass)
    widget.listing.value = tuple(number for number, label in source.items() if "tl.sum(x, axis=1)" in label)
    _, sass = widget.code()
    assert sum("SHFL" in text for _, text in sass) == 7 and "7" in widget._sass.value

"""The compiled-kernel explorer: what it says comes from the compiler, and what cannot be compiled
leaves the picture before."""

from __future__ import annotations

import pytest

from course_lib import compiler
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.compiler import CompileError, CompileReport, Lines, residency
from course_lib.lessons import kernel_explorer
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.pictures.compiled_kernel import model as explorer_model
from course_lib.lessons.pictures.compiled_kernel.model import (
    WARPS,
    describe_report,
    learners_kernel,
)

PTX = "mov;\nld.global \t%r1; // comment <1>\n@%p1 add.s32 %r2;\nst.global;"


def report(num_warps=4, registers=40, spill=0, **changes) -> CompileReport:
    made = {
        "kernel": "k", "arch": "sm_90", "num_warps": num_warps, "registers": registers,
        "spill_bytes": spill, "shared_bytes": 64,
        "loads": {16: 2}, "stores": {4: 1, 16: 1}, "ptx": PTX, "sass": "LDG\nFADD\nSTG\n",
        "ttir": "", "ttgir": "", "lines": {12: Lines((2, 3), (1,)), 13: Lines((4,), (3,))},
        "seconds": 0.1,
    }  # fmt: skip
    return CompileReport(**made | changes)


def one_set(reports: dict[int, CompileReport | str]) -> dict:
    columns = [
        {"warps": warps, "refused": made} if isinstance(made, str) else describe_report(made, warps)
        for warps, made in reports.items()
    ]
    source = [(11, 0, "def k(x):"), (12, 4, "y = tl.load(x)"), (13, 4, "tl.store(x, y)")]
    return {
        "kernel": "k", "function": "k", "words": "rows", "block": 1024, "dtype": "fp16",
        "arch": "sm_90", "source": source, "columns": columns,
    }  # fmt: skip


def make_picture(*sets: dict) -> MovingPicture:
    return MovingPicture(
        "compiled_kernel", {"sets": list(sets), "chosen": len(sets) - 1, "warps": 4}, "a kernel"
    )


@pytest.fixture
def shown(show):
    return show(make_picture(one_set({w: report(w) for w in WARPS})))


# ---- words


def test_the_title_says_what_the_reports_say(shown):
    for spills, words in (
        (
            (900, 12, 0, 0, 0, 0),
            "BLOCK = 1024 spills registers with 1 and 2 warps, and not with 4 to 32 warps",
        ),
        (
            (900, 0, 0, 0, 0, 8),
            "BLOCK = 1024 spills registers with 1 and 32 warps, and not with 2 to 16 warps",
        ),
        (
            (0, 0, 0, 0, 0, 8),
            "BLOCK = 1024 spills registers with 32 warps, and not with 1 to 16 warps",
        ),
        (
            (1, 0, 1, 0, 1, 0),
            "BLOCK = 1024 spills registers with 1, 4 and 16 warps, and not with 2, 8 and 32 warps",
        ),
        ((1, 1, 1, 1, 1, 1), "BLOCK = 1024 spills registers with every number of warps tried"),
        (
            (0, 0, 0, 0, 0, 0),
            "More warps, fewer registers per thread: 90 with 1 warp, 40 with 32 warps",
        ),
    ):
        made = {
            w: report(w, 90 - 10 * i, spill)
            for i, (w, spill) in enumerate(zip(WARPS, spills, strict=True))
        }
        assert shown.call("makeTitle", one_set(made), 4) == words


def test_the_caption_names_the_limit_and_a_refusal(shown):
    held = one_set({w: report(w, 128 if w == 4 else 40) for w in WARPS})
    words = shown.call("makeCaption", held, 4)
    assert "128 registers per thread, nothing is spilled, 64 bytes of shared memory" in words
    assert (
        "16 of the 64 warps that a multiprocessor can hold are resident, limited by registers."
        in words
    )
    assert "move 128 bits per thread. Stores move 32 and 128 bits per thread." in words
    free = one_set({w: report(w, 32, shared_bytes=0) for w in WARPS})
    assert (
        "64 of the 64 warps that a multiprocessor can hold are resident: no place is free."
        in shown.call("makeCaption", free, 4)
    )
    assert "has not enough registers for one program." in shown.call(
        "makeCaption", one_set({w: report(w, 128) for w in WARPS}), 32
    )
    refused = one_set({**{w: report(w) for w in WARPS}, 4: "ex.py, line 3: `v` is not defined."})
    assert shown.call("makeTitle", refused, 4) == "The compiler makes no kernel for 4 warps"
    assert shown.call("makeCaption", refused, 4).endswith("ex.py, line 3: `v` is not defined.")


def test_the_limit_is_the_resource_with_least_room():
    assert residency("sm_90", 255, 0, 8).limited_by == ("registers",)
    assert residency("sm_90", 16, 0, 1).limited_by == ("programs",)
    assert residency("sm_90", 32, 100 << 10, 4).limited_by == ("shared memory",)
    assert residency("sm_90", 32, 0, 4).limited_by == ()
    assert residency("sm_120", 33, 0, 32).limited_by == ("warps", "registers")


def test_lines_lead_to_code():
    code = describe_report(report(), 4)["code"]
    assert code[12] == [
        (2, [("ld.global", 1), ("add.s32", 1)], ["ld.global %r1", "@%p1 add.s32 %r2"]),
        (1, [("LDG", 1)], ["LDG"]),
    ]
    assert code[13][1] == (1, [("STG", 1)], ["STG"]) and 11 not in code


# ---- the picture


def test_a_hand_and_the_keys_choose_a_column_and_a_line(show):
    shown = show(
        make_picture(
            one_set(
                {
                    w: report(w, 90 - w, lines={12: Lines((2, 3), (1,)), 13: Lines((4,), (3,) * w)})
                    for w in WARPS
                }
            )
        )
    )
    assert (
        "4 warps, sm_90: 86 registers" in shown.caption
        and "PTX of line 12: 2 instructions" in shown.drawn
    )
    shown.grip("warps-16").click()
    assert "16 warps, sm_90: 74 registers" in shown.caption
    shown.grip("warps-1").press("Enter")
    assert shown.state["warps"] == 1
    shown.grip("line-13").click()
    assert "SASS of line 13: 1 instruction" in shown.drawn and "STG" in shown.drawn
    slider = shown.page.locator('[data-control="line"] input')
    slider.press("ArrowLeft")
    assert (
        shown.state["line"] == 12
        and "Line 12 became 2 PTX instructions and 1 SASS instruction." in shown.caption
    )
    shown.page.locator('[data-control="warps"] input').press("End")
    assert shown.state["warps"] == 32 and shown.state["line"] == 12
    shown.page.get_by_role("button", name="Reset").click()
    assert shown.state == {"set": 0, "warps": 4, "line": 12}


def test_every_extreme_is_drawn_without_overlap(show):
    widths = {1: 1000, 2: 1000, 4: 1000, 8: 1000, 16: 1000}
    extremes = [
        {
            w: report(w, 255, 123456, loads=widths, stores=widths, shared_bytes=232448)
            for w in WARPS
        },
        {w: report(w, loads=None, stores=None, sass=None, lines={}) for w in WARPS},
        {**{w: report(w, loads={}, stores={}) for w in WARPS}, 32: "ex.py, line 3: no"},
    ]
    shown = show(make_picture(*map(one_set, extremes)))
    shown.assert_clear(
        [{"set": index, "warps": warps} for index in range(len(extremes)) for warps in (1, 32)]
    )


# ---- asking the compiler


class Compiler:
    """Stands in for compile_report: counts, and refuses what it is told to."""

    def __init__(self, monkeypatch):
        self.asked, self.refuses = [], {}
        monkeypatch.setattr(explorer_model, "compile_report", self)

    def __call__(self, kernel, arguments, constexprs, *, num_warps, arch, limit):
        self.asked.append((constexprs.get("BLOCK"), num_warps, arch))
        if num_warps in self.refuses:
            raise self.refuses[num_warps]
        return report(num_warps, 128 // num_warps, arch=arch)


def test_each_kernel_is_compiled_once_and_the_one_before_stays_to_compare(monkeypatch):
    stand_in = Compiler(monkeypatch)
    asking = kernel_explorer("blocked", BLOCK=128)
    assert stand_in.asked == [(128, warps, "sm_90") for warps in WARPS]
    for block in (256, 512, 256, 128):
        asking.controls["block"].value = block
        asking.ask()
    assert asking.error is None and len(stand_in.asked) == 3 * len(WARPS)
    sets = asking.picture.data["sets"]
    assert [made["block"] for made in sets] == [256, 128] and asking.picture.data["chosen"] == 1
    assert (
        "in fp16, 128 columns per step" in asking.picture.alt
        and "4: 32 registers, 0 bytes spilled" in asking.picture.alt
    )


def test_a_refusal_is_said_in_words_and_the_picture_before_stays(monkeypatch):
    stand_in = Compiler(monkeypatch)
    asking = kernel_explorer("blocked", BLOCK=128)
    before = asking.picture
    unknown = CompileError("undefined_name", "`v` is not defined", "ex.py", 3, 1, "y = v")
    stand_in.refuses = dict.fromkeys(WARPS, unknown)
    asking.controls["block"].value = 256
    asking.ask()
    assert asking.picture is before and "ex.py, line 3: `v` is not defined" in asking.said.value
    stand_in.refuses = {1: unknown}
    asking.ask()
    columns = asking.picture.data["sets"][-1]["columns"]
    assert (
        asking.error is None
        and "`v` is not defined" in columns[0]["refused"]
        and columns[1]["registers"] == 64
    )
    stand_in.refuses = {}
    asking.ask()  # asked again: a lack of time may not come again
    assert columns is not asking.picture.data["sets"][-1]["columns"] and len(
        stand_in.asked
    ) > 3 * len(WARPS)
    stand_in.refuses = {8: ZeroDivisionError("ours")}
    asking.controls["block"].value = 512
    asking.ask()
    assert (
        "ZeroDivisionError: ours" in asking.said.value
        and "fault of the course" in asking.said.value
    )


def test_the_learners_file(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_EXERCISES", str(tmp_path))
    with pytest.raises(CourseError, match="there is no file"):
        learners_kernel("07a")
    from course_lib.authoring import exercises

    exercises.write(tmp_path)
    with pytest.raises(CourseError, match="still as the course wrote it"):
        learners_kernel("07a")
    stand_in = Compiler(monkeypatch)
    asking = kernel_explorer()
    before = asking.picture
    asking.controls["kernel"].value = "yours, 07a"
    asking.ask()
    assert "Do exercise 07a first" in asking.said.value and asking.picture is before
    solved = (paths.SOLUTIONS / "ex07a_layer_norm_forward.py").read_text()
    (tmp_path / "ex07a_layer_norm_forward.py").write_text(solved)
    asking.ask()
    assert (
        asking.error is None
        and asking.picture.data["sets"][-1]["function"] == "layer_norm_blocked_kernel"
    )
    assert learners_kernel("7A").name == "layer_norm_blocked_kernel"
    many = len(stand_in.asked)
    (tmp_path / "ex07a_layer_norm_forward.py").write_text(solved + "\n# changed\n")
    asking.ask()
    assert len(stand_in.asked) == many + len(WARPS)  # a changed file is compiled anew


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: kernel_explorer("mine"),
        lambda: kernel_explorer(BLOCK=100),
        lambda: kernel_explorer(num_warps=3),
        lambda: kernel_explorer(dtype="fp8"),
        lambda: kernel_explorer(arch="sm_70"),
    ],
)
def test_wrong_arguments_are_refused_in_words(wrong):
    with pytest.raises(CourseError, match="the explorer takes"):
        wrong()
    with pytest.raises(TypeError, match="is no kernel"):
        compiler.source_text(3)


def test_the_numbers_are_the_compilers(monkeypatch, show):
    """Two real compilations: what is shown is what compile_report says, and lines lead to the load
    and to the sum."""
    monkeypatch.setattr(explorer_model, "WARPS", (4, 32))
    asking = kernel_explorer("resident", BLOCK=256)
    made = asking.picture.data["sets"][0]
    subject = explorer_model.family()[0]
    arguments, constexprs = subject.launch("fp16", 256)
    real = compiler.compile_report(
        subject.kernel(), arguments, constexprs, num_warps=4, arch="sm_90"
    )
    shown = show(asking.picture)
    assert (
        f"4 warps, sm_90: {real.registers} registers per thread, nothing is spilled"
        in shown.caption
    )
    load = shown.state["line"]
    assert "tl.load(" in next(text for line, _, text in made["source"] if line == load)
    ptx, sass = made["columns"][0]["code"][load]
    assert any("ld.global" in kind for kind, _ in ptx[1]) and any(
        "LDG" in kind for kind, _ in sass[1]
    )
    line = next(line for line, _, text in made["source"] if "tl.sum(x, axis=1)" in text)
    kinds = dict(made["columns"][0]["code"][line][1][1])
    listing = real.sass.splitlines()
    assert sum(many for kind, many in kinds.items() if "SHFL" in kind) == 7
    assert (
        made["columns"][0]["code"][line][1][0]
        == len(real.lines[line].sass)
        == len([listing[n - 1] for n in real.lines[line].sass])
    )
    shown.grip(f"line-{line}").click()
    assert f"SASS of line {line}: {len(real.lines[line].sass)} instructions" in shown.drawn
    shown.shoot("compiled_kernel")
    assert len(asking.picture.make_html()) < 150_000

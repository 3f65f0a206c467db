"""The widgets: their models against plain references, their words, and what a notebook gets to show."""

from __future__ import annotations

import base64
import math
import threading

import ipywidgets
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from course_lib.base.errors import CourseError
from course_lib.lessons import block_stepper, bytes_moved, copy_map, live, picture, style
from course_lib.lessons.block_stepper.model import EXAMPLE, describe, steps
from course_lib.lessons.block_stepper.widget import draw as block_stepper_draw
from course_lib.lessons.bytes_moved.model import microseconds
from course_lib.lessons.bytes_moved.model import model as traffic
from course_lib.lessons.bytes_moved.widget import draw as bytes_moved_draw
from course_lib.lessons.copy_map.model import describe as describe_map
from course_lib.lessons.copy_map.model import model as lanes
from course_lib.lessons.copy_map.model import title as map_title
from course_lib.lessons.copy_map.widget import draw as copy_map_draw
from course_lib.lessons.live import VIEW, LiveFigure, Picture, alt_text_in_html, without_live_views

PNG = b"\x89PNG\r\n\x1a\n"
MAKERS = {"copy_map": copy_map, "block_stepper": block_stepper, "bytes_moved": bytes_moved}


# ---- the models


@given(
    n=st.integers(1, 60),
    block=st.sampled_from([1, 2, 4, 8, 16]),
    programs=st.none() | st.integers(1, 25),
    masked=st.booleans(),
)
def test_copy_map_does_what_the_kernel_does(n, block, programs, masked):
    state = lanes(n, block, programs, masked)
    memory = np.full(n + 25 * 16 + 16, -1)
    for pid in range(-(-n // block) if programs is None else programs):
        offsets = pid * block + np.arange(block)
        keep = offsets < n if masked else np.full(block, True)
        memory[offsets[keep]] = offsets[keep]
    touched = set(np.flatnonzero(memory >= 0).tolist())
    assert set(state.written) == {i for i in touched if i < n}
    assert set(state.past_end) == {i for i in touched if i >= n}
    assert set(state.unwritten) == set(range(n)) - touched
    if programs is None:
        assert not state.unwritten and not state.idle and len(state.lanes) == state.needed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((10, 4), "The mask holds back 2 lanes of program 2"),
        ((8, 4), "every lane has an element"),
        ((10, 4, None, False), "Without the mask, 2 lanes write past the end of y"),
        ((10, 4, 2), "2 programs are too few: 2 elements of y never written"),
        ((10, 4, 5), "2 programs have nothing to copy"),
        ((9, 4, 2), "2 programs are too few: 1 element of y never written"),
    ],
)
def test_copy_map_says_what_happens(arguments, words):
    assert words in map_title(lanes(*arguments))


def test_copy_map_caption_names_the_addresses():
    assert "Offsets 10 to 11 fail offsets < n" in describe_map(lanes(10, 4))
    assert "Offset 11 lies behind y" in describe_map(lanes(11, 4, None, False))
    assert "Elements 8 to 9: no program asks" in describe_map(lanes(10, 4, 2))


def _reference(x, kind, eps, w, b):
    mean = x.mean(axis=1) if kind == "layer_norm" else np.zeros(len(x))
    spread = ((x - mean[:, None]) ** 2).mean(axis=1)
    rstd = 1 / np.sqrt(spread + eps)
    return (x - mean[:, None]) * rstd[:, None] * w + b, mean, rstd


@settings(max_examples=60, deadline=None)
@given(data=st.data(), kind=st.sampled_from(["layer_norm", "rms_norm"]), block=st.sampled_from([1, 2, 4, 8, 16, 32]))
def test_stepper_ends_at_the_float64_reference(data, kind, block):
    m, n = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 19))
    numbers = st.floats(-100, 100, width=32)
    x, w = data.draw(arrays(np.float64, (m, n), elements=numbers)), data.draw(arrays(np.float64, n, elements=numbers))
    b = data.draw(arrays(np.float64, n, elements=numbers)) if kind == "layer_norm" else None
    frames = steps(x, block, kind, eps=1e-3, w=w, b=b)
    y, mean, rstd = _reference(x, kind, 1e-3, w, 0.0 if b is None else b)
    blocks = -(-n // block)
    assert len(frames) == m * blocks * (3 if kind == "layer_norm" else 2)
    rows = frames[-1].rows
    np.testing.assert_allclose([row.y for row in rows], y, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose([row.rstd for row in rows], rstd, rtol=1e-9)
    assert {row.status for row in rows} == {"done"}
    if kind == "layer_norm":
        np.testing.assert_allclose([row.mean for row in rows], mean, rtol=1e-9, atol=1e-9)


def test_stepper_gives_the_worked_example():
    frames = steps(EXAMPLE, 4, "rms_norm")
    first, second = [frame for frame in frames if frame.row == 0 and frame.phase == "squares"]
    assert (first.running, second.running, sum(second.added)) == (14.25, 21.75, 7.5)
    assert [row.squares for row in frames[-1].rows] == [21.75, 38.75, 37.25]
    np.testing.assert_allclose(frames[-1].rows[0].y, [1.21, -0.61, 1.82, 0.30, -0.30, 0.91, -1.21, 0.61], atol=0.005)
    assert frames[-1].rows[0].rms == pytest.approx(1.649, abs=5e-4)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 21), block=st.sampled_from([2, 4, 8, 16]), mean=st.floats(-50, 50))
def test_unmasked_deviation_adds_exactly_pad_mean_squared_over_n(n, block, mean):
    x = np.random.default_rng(n).normal(mean, 1.0, (1, n))
    frames = steps(x, block, "layer_norm", mask_deviation=False)
    got, right = frames[-1].rows[0].spread, frames[-1].right_spread
    pad = -(-n // block) * block - n
    assert right == pytest.approx(x.var(), rel=1e-12)
    assert got - right == pytest.approx(pad * x.mean() ** 2 / n, rel=1e-9, abs=1e-9)
    tail = next(frame for frame in frames if frame.phase == "deviation" and frame.last_block)
    assert [lane for lane, off in zip(tail.lanes, tail.masked, strict=True) if off] == pytest.approx([-x.mean()] * pad)


def test_stepper_frames_tell_a_row_in_order():
    frames = steps(EXAMPLE, 4, "layer_norm")
    assert [frame.phase for frame in frames[:6]] == ["sum", "sum", "deviation", "deviation", "normalise", "normalise"]
    assert [frame.rows[0].status for frame in frames[:6]] == [
        "summing",
        "summing",
        "variance",
        "variance",
        "normalising",
        "done",
    ]
    assert frames[0].rows[0].mean is None and frames[1].rows[0].mean == 0.5625
    assert frames[4].rows[0].y[3] is not None and frames[4].rows[0].y[4] is None
    assert frames[0].rows[1].status == "waiting"


def test_stepper_caption_names_the_state():
    frames = steps(EXAMPLE, 4, "rms_norm")
    words = describe(frames[1])
    assert (
        "row 0 of 3 x 8, sweep 1 of 2" in words
        and "columns 4 to 7" in words
        and "21.75 together" in words
        and "rstd = 0.61" in words
    )
    wrong = describe(steps([[3.0, 3.0, 3.0]], 4, "layer_norm", mask_deviation=False)[1])
    assert "unmasked, holds 0 - mean = -3" in wrong and "The right variance is 0: the padded lanes added 3" in wrong


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1.0, 2.0], 4, "rms_norm"), "shape (M, N)"),
        (([[1.0]], 3, "rms_norm"), "power of two"),
        (([[1.0]], 2, "batch_norm"), "layer_norm and rms_norm"),
        (([[1.0]], 2, "rms_norm", -1.0), "cannot be negative"),
        (([[1.0]], 2, "rms_norm", 1e-5, None, [1.0]), "no bias"),
        (([[1.0]], 2, "layer_norm", 1e-5, [1.0, 2.0]), "each of the 1 columns"),
    ],
)
def test_stepper_says_what_does_not_fit(arguments, words):
    with pytest.raises(CourseError, match=words.replace("(", r"\(").replace(")", r"\)")):
        steps(*arguments)


@given(m=st.integers(1, 5000), n=st.integers(1, 5000), dtype=st.sampled_from(["fp16", "bf16", "fp32"]))
def test_bytes_of_add_and_norm(m, n, dtype):
    size = 4 if dtype == "fp32" else 2
    state = traffic("add", m, n, dtype)
    assert (state.unfused_bytes, state.fused_bytes) == (5 * m * n * size, 4 * m * n * size)
    assert state.ratio == pytest.approx(0.8)


@given(m=st.integers(1, 5000), n=st.integers(1, 5000))
def test_bytes_of_the_eager_chain(m, n):
    # fp32: pow 2, mean 1, mul 2, mul 2 times M N; and per row mean 1, add 2, rsqrt 2, mul 1 times M
    assert traffic("eager", m, n, "fp32").unfused_bytes == 4 * (7 * m * n + 6 * m)
    assert traffic("eager", m, n, "fp16", upcast=False).unfused_bytes == 2 * (7 * m * n + 6 * m)
    # cast up 2 + 4, pow 8, mean 4, mul 8, cast down 4 + 2, mul 4 bytes an element
    assert traffic("eager", m, n, "bf16", upcast=True).unfused_bytes == 36 * m * n + 4 * 6 * m
    assert traffic("eager", m, n, "bf16").fused_bytes == 4 * m * n
    assert len(traffic("eager", m, n, "bf16").unfused) == 8 and len(traffic("eager", m, n, "fp32").unfused) == 6


def test_time_at_the_memory_limit():
    assert microseconds(3e9, 3000) == pytest.approx(1000.0)  # 3 GB at 3 TB/s is a millisecond


# ---- the widgets


@pytest.mark.parametrize("name", MAKERS)
def test_bundle_holds_the_view_the_png_and_its_alt_text(name):
    widget = MAKERS[name]()
    data, metadata = widget._repr_mimebundle_()
    assert data[VIEW]["model_id"] == widget.model_id
    png = base64.b64decode(data["image/png"])
    alt = metadata["image/png"]["alt"]
    assert png.startswith(PNG) and len(png) > 5000
    assert data["text/plain"] == alt and len(alt) > 80
    assert alt.encode("latin-1", "replace")[:40] in png


@pytest.mark.parametrize("name", MAKERS)
def test_first_picture_is_there_at_once(name):
    widget = MAKERS[name]()
    assert bytes(widget._image.value).startswith(PNG)
    assert "role=" in widget._caption.value and "aria-live" in widget._caption.value
    assert widget.caption.endswith(".") and len(widget.caption) > 60


CHANGES = [
    ("copy_map", "n", 11, "n = 11"),
    ("copy_map", "block", 8, "BLOCK = 8, 2 programs"),
    ("copy_map", "masked", False, "without the mask"),
    ("block_stepper", "kind", "layer_norm", "LayerNorm"),
    ("block_stepper", "block", 8, "columns 0 to 7"),
    ("block_stepper", "data", "random, mean 3", "RMSNorm, row 0"),
    ("bytes_moved", "m", 1024, "M = 1024"),
    ("bytes_moved", "dtype", "fp32", "fp32"),
    ("bytes_moved", "case", "eager", "8 launches"),
    ("bytes_moved", "bandwidth", 1000, "1000 GB/s"),
]


@pytest.mark.parametrize(("name", "control", "value", "words"), CHANGES)
def test_a_control_changes_the_picture_and_the_words(name, control, value, words):
    widget = MAKERS[name]()
    before = bytes(widget._image.value)
    widget.controls[control].value = value
    assert bytes(widget._image.value) != before and bytes(widget._image.value).startswith(PNG)
    assert words in widget.caption
    widget.reset()
    assert bytes(widget._image.value) == before


def test_copy_map_follows_the_grid_until_it_is_let_go():
    widget = copy_map()
    widget.controls["n"].value = 30
    assert widget.controls["programs"].value == 8 and widget.controls["programs"].disabled
    widget.controls["enough"].value = False
    widget.controls["programs"].value = 3
    assert not widget.controls["programs"].disabled and "no program asks" in widget.caption


def test_stepper_buttons_move_one_frame_and_stop_at_the_ends():
    widget = block_stepper("rms_norm")
    start = bytes(widget._image.value)
    widget.step.click()
    assert widget.slider.value == 1 and "Frame 2 of 12" in widget.caption and bytes(widget._image.value) != start
    widget.back.click()
    widget.back.click()
    assert widget.slider.value == 0 and bytes(widget._image.value) == start
    widget.slider.value = 11
    widget.step.click()
    assert widget.slider.value == 11 and "Row 2 is done" in widget.caption
    widget._reset.click()
    assert widget.slider.value == 0 and "Frame 1 of 12" in widget.caption


def test_stepper_saves_the_frame_that_tells_most():
    _, metadata = block_stepper("rms_norm")._repr_mimebundle_()
    assert "21.75" in metadata["image/png"]["alt"] and "Frame 2 of 12" in metadata["image/png"]["alt"]


def test_stepper_starts_anew_when_the_data_change():
    widget = block_stepper("layer_norm")
    widget.slider.value = 17
    widget.controls["kind"].value = "rms_norm"
    assert (widget.slider.value, widget.slider.max, widget.play.max) == (0, 11, 11)
    assert widget.controls["mask_deviation"].disabled


def test_reset_outlives_the_tick_that_was_under_way(monkeypatch):
    monkeypatch.setattr(live.time, "monotonic", lambda: 100.0)  # drawing a frame can take longer than a late message
    widget = block_stepper("rms_norm")
    widget.slider.value = 5
    widget.play.playing = True
    widget.reset()
    widget.slider.value = 6  # what the browser had already sent
    assert widget.slider.value == 0 and "Frame 1 of 12" in widget.caption and not widget.play.playing
    widget.step.click()
    assert widget.slider.value == 1


def test_stepper_takes_the_readers_numbers():
    widget = block_stepper("layer_norm", x=[[3.0, 3.0, 3.0]], block=4)
    widget.controls["mask_deviation"].value = False
    widget.step.click()
    assert "the padded lanes added 3" in widget.caption


@pytest.mark.parametrize("kind", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize(("shape", "block"), [((1, 1), 2), ((6, 16), 2), ((6, 16), 16), ((2, 5), 16), ((3, 10), 4)])
def test_stepper_draws_every_extreme_inside_the_figure(kind, shape, block):
    x = np.round(np.random.default_rng(1).normal(1000, 400, shape))
    frames = steps(x, block, kind, mask_deviation=False)
    _assert_nothing_touches_the_edge(block_stepper_draw(frames, len(frames) // 2))


@pytest.mark.parametrize("arguments", [(40, 2), (1, 2), (3, 16, 20, False), (40, 4, 1), (1, 16, 20)])
def test_copy_map_draws_every_extreme_inside_the_figure(arguments):
    _assert_nothing_touches_the_edge(copy_map_draw(lanes(*arguments)))


@pytest.mark.parametrize("case", ["add", "eager"])
@pytest.mark.parametrize(
    ("m", "n", "dtype", "bandwidth"),
    [(1, 1, "fp16", 100), (1, 1, "fp32", 100), (65536, 32768, "bf16", 8000), (4096, 4097, "fp16", 3000)],
)
def test_bytes_moved_draws_every_extreme_inside_the_figure(case, m, n, dtype, bandwidth):
    _assert_nothing_touches_the_edge(bytes_moved_draw(traffic(case, m, n, dtype), bandwidth))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: copy_map(n=0),
        lambda: copy_map(n=10, block=3),
        lambda: block_stepper(block=5),
        lambda: block_stepper(x=np.zeros((7, 2))),
        lambda: block_stepper("group_norm"),
        lambda: bytes_moved(M=0),
        lambda: bytes_moved(dtype="fp8"),
    ],
)
def test_wrong_arguments_are_refused_in_words(wrong):
    with pytest.raises(CourseError):
        wrong()


# ---- the layer that they share


def _tiny(draw=None, problem=None):
    def plain(n):
        if n == 3:
            raise problem
        figure, axes = style.drawing(1.0, 0.5)
        style.write(axes, 0.1, 0.2, str(n))
        return Picture(style.png(figure, f"n is {n}."), f"A number. n is {n}.", f"n is {n}.")

    return LiveFigure(draw or plain, {"n": ipywidgets.IntSlider(1, 0, 5)})


def test_an_exception_in_a_callback_is_shown_in_words_and_goes_away():
    widget = _tiny(problem=ZeroDivisionError("by <nothing>"))
    before = bytes(widget._image.value)
    widget.controls["n"].value = 3
    assert isinstance(widget.error, ZeroDivisionError)
    assert "n = 3: ZeroDivisionError: by <nothing>" in widget.caption and "Reset" in widget.caption
    assert "&lt;nothing&gt;" in widget._caption.value and bytes(widget._image.value) != before
    widget.controls["n"].value = 4
    assert widget.error is None and widget.caption == "n is 4."


def test_a_course_error_in_a_callback_keeps_its_own_words():
    widget = _tiny(problem=CourseError("3 is taken. Choose another."))
    widget.controls["n"].value = 3
    assert widget.caption == "No picture for n = 3: 3 is taken. Choose another."


def test_an_exception_in_the_first_picture_is_raised():
    def broken(n):
        raise ValueError("at once")

    with pytest.raises(ValueError, match="at once"):
        _tiny(draw=broken)


def test_two_threads_do_not_mix_their_pictures():
    widget = copy_map()
    threads = [threading.Thread(target=lambda v=v: setattr(widget.controls["n"], "value", v)) for v in (5, 17, 39)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert widget.error is None
    final = widget.controls["n"].value
    assert f"n = {final}," in widget.caption
    assert bytes(widget._image.value) == widget.picture.png


def test_drawing_leaves_pyplot_alone():
    import matplotlib.pyplot as plt

    plt.close("all")
    widget = block_stepper()
    widget.step.click()
    assert plt.get_fignums() == []


def test_picture_closes_the_figure_and_wants_alt_text():
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots()
    axes.plot([1, 2], [1, 4])
    shown = picture(figure, "A line that rises.")
    assert not plt.fignum_exists(figure.number)
    data, metadata = shown._repr_mimebundle_()
    assert base64.b64decode(data["image/png"]).startswith(PNG) and metadata["image/png"]["alt"] == "A line that rises."
    with pytest.raises(CourseError, match="alt text"):
        picture(plt.figure(), " ")
    plt.close("all")


def _notebook():
    nbformat = pytest.importorskip("nbformat")
    data, metadata = copy_map()._repr_mimebundle_()
    output = nbformat.v4.new_output("execute_result", data=data, metadata=metadata, execution_count=1)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("copy_map()", outputs=[output])])
    notebook.metadata["widgets"] = {
        "application/vnd.jupyter.widget-state+json": {
            "state": {data[VIEW]["model_id"]: {}},
            "version_major": 2,
            "version_minor": 0,
        }
    }
    return notebook, metadata["image/png"]["alt"]


def test_saved_notebook_keeps_the_png_and_drops_the_live_view():
    notebook, alt = _notebook()
    without_live_views(notebook)
    output = notebook.cells[0].outputs[0]
    assert "widgets" not in notebook.metadata and VIEW not in output.data
    assert output.data["image/png"] and output.metadata["image/png"]["alt"] == alt


@pytest.mark.parametrize("template", ["lab", "classic"])
def test_static_html_shows_the_png_with_its_alt_text(template):
    nbconvert = pytest.importorskip("nbconvert")
    from bs4 import BeautifulSoup

    notebook, alt = _notebook()
    exporter = nbconvert.HTMLExporter(template_name=template, preprocessors=[alt_text_in_html])
    html, _ = exporter.from_notebook_node(notebook)
    (image,) = BeautifulSoup(html, "html.parser").find_all("img")
    assert image["alt"] == alt and image["src"].startswith("data:image/png;base64,iVBOR")


def _assert_nothing_touches_the_edge(shown: Picture) -> None:
    import io

    from PIL import Image

    pixels = np.asarray(Image.open(io.BytesIO(shown.png)).convert("L"), dtype=int)
    edges = np.concatenate([pixels[:4].ravel(), pixels[-4:].ravel(), pixels[:, :4].ravel(), pixels[:, -4:].ravel()])
    assert edges.min() > 235, "something is cut off at the edge of the figure"
    assert math.isclose(pixels.shape[1], style.WIDTH * style.DPI, abs_tol=1)

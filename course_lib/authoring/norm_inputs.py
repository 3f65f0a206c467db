"""``python -m course_lib.authoring.norm_inputs``: measure the rows that enter the norms of small
models, and store their statistics.

Lesson 03 shows them. One model is lesson 14's, before and after its training. Two were trained by
others and come with a package that the course does not need: ``pip install magika
rapidocr-onnxruntime onnx onnxruntime pillow`` in an environment that also has the course. Magika
tells file types by their bytes; it reads text files of this repository. PP-OCRv4 reads the text of
an image line; it reads lines of the fables. No weight of them is stored here, only quantiles that
were measured.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import date
from pathlib import Path

import numpy as np
import torch
from torch import nn

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.files import write_atomic
from course_lib.bench import transformer
from course_lib.lessons.figures.norm_inputs import (
    QUANTILES,
    STORED,
    TRAINED,
    UNTRAINED,
    NormInput,
    NormInputs,
)

_STEPS = 300  # as many as in lesson 14
_LINES = 32  # lines of text for PP-OCRv4
_FILES = (
    "README.md docs/*.md notebooks/source/*.py solutions/*.py course_lib/exercises/*/exercise.toml"
    " course_lib/lessons/kit/*.[cj]s*".split()
)


def describe_rows(model: str, norm: str, x: np.ndarray) -> NormInput:
    """Return what is stored of the rows of x, shape (M, N), that enter ``norm``."""
    x = x.astype(np.float64)
    ratios = np.abs(x.mean(axis=1)) / x.std(axis=1)
    rms = np.sqrt((x * x).mean(axis=1))
    columns = np.sqrt((x * x).mean(axis=0))
    of_ratios, of_rms = (
        [_round(value) for value in np.quantile(values, QUANTILES)] for values in (ratios, rms)
    )
    return NormInput(
        model,
        norm,
        len(x),
        x.shape[1],
        of_ratios,
        of_rms,
        _round(columns.max() / np.median(columns)),
    )


def _round(value: float) -> float:
    return float(f"{value:.3g}")


def measure_toy() -> Iterator[NormInput]:
    """Yield the norms of lesson 14's model on held-out text, untrained, and trained with PyTorch's
    LayerNorm as in the lesson."""
    corpus = transformer.split(transformer.fables())
    model = transformer.build(corpus.training, nn.LayerNorm)
    codes = next(transformer.batches(corpus.held_out, transformer.ModelSize(batch=128), seed=1))[0]
    yield from _observe(model, codes, UNTRAINED)
    for _ in transformer.train(model, corpus.training, _STEPS):
        pass
    yield from _observe(model, codes, TRAINED)


def _observe(model: nn.Module, codes: torch.Tensor, name: str) -> list[NormInput]:
    rows_seen: list[np.ndarray] = []
    norms = [module for module in model.modules() if isinstance(module, nn.LayerNorm)]
    hooks = [
        module.register_forward_pre_hook(
            lambda _, arguments: rows_seen.append(arguments[0].flatten(0, -2).numpy())
        )
        for module in norms
    ]
    with torch.no_grad():
        model(codes)
    for hook in hooks:
        hook.remove()
    return [describe_rows(name, f"norm {place}", x) for place, x in enumerate(rows_seen, 1)]


def run_with_norm_inputs(model_file: Path, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Run an ONNX model on each input, and return the rows that enter each of its layer norms, by
    the tensor's name.

    A layer norm is known by a tensor from which something is subtracted and over whose last
    dimension a sum or a mean is taken.
    """
    import onnx  # pyright: ignore[reportMissingImports] - only this script needs it
    import onnxruntime  # pyright: ignore[reportMissingImports]

    model = onnx.load(model_file)
    summed = {
        node.input[0] for node in model.graph.node if node.op_type in ("ReduceMean", "ReduceSum")
    }
    names = list(
        dict.fromkeys(
            node.input[0]
            for node in model.graph.node
            if node.op_type == "Sub" and node.input[0] in summed
        )
    )
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    rows_by_name: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for model_input in inputs:
        for name, x in zip(
            names, session.run(names, {session.get_inputs()[0].name: model_input}), strict=True
        ):
            rows_by_name[name].append(x.reshape(-1, x.shape[-1]))
    return {name: np.concatenate(rows) for name, rows in rows_by_name.items()}


def read_files() -> list[np.ndarray]:
    """Return an input of Magika per text file of the repository: its first and last 1024 bytes,
    with 256 where a file has fewer."""
    encoded = []
    for file in sorted(file for pattern in _FILES for file in paths.ROOT.glob(pattern)):
        content = list(file.read_bytes().strip())
        pad = [256] * max(0, 1024 - len(content))
        encoded.append(np.array([content[:1024] + pad + pad + content[-1024:]], np.int32))
    return encoded


def draw_lines() -> list[np.ndarray]:
    """Return an input of PP-OCRv4 per line of text: black words on white, 48 pixels high, from -1
    to 1."""
    from PIL import Image, ImageDraw, ImageFont  # pyright: ignore[reportMissingImports] - only this script needs it

    font, images = ImageFont.load_default(30), []
    for line in transformer.fables().splitlines()[:_LINES]:
        words = line[:40]
        image = Image.new("RGB", (int(font.getlength(words)) + 20, 48), "white")
        ImageDraw.Draw(image).text((10, 8), words, "black", font)
        images.append((np.asarray(image, np.float32).transpose(2, 0, 1)[None] / 255 - 0.5) / 0.5)
    return images


def measure_pretrained(
    name: str, package: str, model_glob: str, inputs: list[np.ndarray]
) -> Iterator[NormInput]:
    """Yield the norms of the model in an installed package, in the order of its graph.

    Raises: CourseError if the package is not installed.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise CourseError(
            f"{package} is not installed. The first lines of {paths.shown(Path(__file__))} say what"
            " is needed."
        )
    (file,) = Path(spec.submodule_search_locations[0]).glob(model_glob)
    for place, x in enumerate(run_with_norm_inputs(file, inputs).values(), 1):
        yield describe_rows(name, f"norm {place}", x)


def main() -> None:
    norms, packages = list(measure_toy()), []
    for name, package, model_glob, inputs in (
        ("Magika", "magika", "models/*/model.onnx", read_files()),
        ("PP-OCRv4", "rapidocr_onnxruntime", "models/*rec*.onnx", draw_lines()),
    ):
        norms += measure_pretrained(name, package, model_glob, inputs)
        about = importlib.metadata.metadata(package.replace("_", "-"))
        packages.append(
            {
                "model": name,
                "package": about["Name"],
                "version": about["Version"],
                "licence": about["License"],
            }
        )
    write_atomic(
        STORED,
        json.dumps(asdict(NormInputs(date.today().isoformat(), packages, norms)), indent=1) + "\n",
    )
    for norm in norms:
        print(
            f"{norm.model:22}{norm.norm:8}{norm.M:7} x {norm.N:3}  |mean|/std {norm.mean_over_std} "
            f" rms {norm.rms}"
        )


if __name__ == "__main__":
    main()

"""Draws formulas as SVG when the site is built, so that a page needs no script, font or network for
them.

With Sphinx's own renderer the browser fetches MathJax. MathML from docutils or latex2mathml
misplaces the index of a hat or lacks ``aligned``, and its look depends on the reader's fonts (tried
on 2026-11-23 with all formulas of lessons 00 to 14).
"""

from __future__ import annotations

import html
import re
from functools import cache
from typing import Any

from docutils.nodes import SkipNode
from ziamath.config import config
from ziamath.zmath import Latex

_SIZE, _EM = 17.0, 16.0  # size in px of a formula's letters, and of the text around it
_SVG = re.compile(
    r'<svg xmlns="[^"]*" xmlns:xlink="[^"]*" width="([\d.]+)" height="([\d.]+)" viewBox="[-\d.]+'
    r' ([-\d.]+) [\d.]+ [\d.]+"'
)


@cache
def draw(latex: str, *, block: bool) -> str:
    """Draw a formula as an ``svg`` in the colour and on the line of the text around it. A screen
    reader reads the LaTeX.

    Raises: ValueError, or an exception of ziamath, if the formula cannot be read.
    """
    # glyphs as paths: a shared glyph is not drawn if the first formula that has it is folded
    config.svg2 = False
    # ziamath has ``aligned`` under another name
    drawable = re.sub(r"\\(begin|end)\{aligned\}", r"\\\1{align*}", latex)
    markup = Latex(drawable, size=_SIZE, color="currentColor", inline=not block).svg()
    match = _SVG.match(markup)
    if match is None or float(match[1]) <= 2:  # the drawing has only its margin
        raise ValueError(f"nothing was drawn for the formula {latex!r}")
    width, height, top = (float(length) for length in match.groups())
    style = f"width:{width / _EM:.3f}em;height:{height / _EM:.3f}em;vertical-align:{-(top + height) / _EM:.3f}em"  # noqa: E501
    label = html.escape(" ".join(latex.split()))
    return f'<svg role="img" aria-label="{label}" style="{style}" {markup[len("<svg ") :]}'


def visit_inline(translator: Any, node: Any) -> None:
    translator.body.append(f'<span class="formula">{draw(node.astext(), block=False)}</span>')
    raise SkipNode


def visit_block(translator: Any, node: Any) -> None:
    translator.body.append(f'<div class="formula-block">{draw(node.astext(), block=True)}</div>')
    raise SkipNode


def setup(app: Any) -> dict[str, Any]:
    app.add_html_math_renderer("svg", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Formulas as SVG, drawn when the site is built: a page needs neither a script nor a font nor a network for them.

Sphinx's own renderer has the browser fetch MathJax. MathML from docutils or latex2mathml misplaces the index of a hat or knows no
``aligned``, and looks as the reader's fonts let it (tried on 2026-11-23 with all formulas of lessons 00 to 14).
"""

from __future__ import annotations

import html
import re
from functools import cache
from typing import Any

from docutils.nodes import SkipNode
from ziamath.config import config
from ziamath.zmath import Latex

_SIZE, _EM = 17.0, 16.0  # px: of a formula's letters, and of the text that it stands in
_SVG = re.compile(r'<svg xmlns="[^"]*" xmlns:xlink="[^"]*" width="([\d.]+)" height="([\d.]+)" viewBox="[-\d.]+ ([-\d.]+) [\d.]+ [\d.]+"')


@cache
def draw(latex: str, *, block: bool) -> str:
    """An ``svg`` in the colour of the text around it and on its line; a screen reader reads the LaTeX.

    Raises: ValueError, or what ziamath raises, if the formula cannot be read.
    """
    config.svg2 = False  # glyphs as paths: a glyph that several formulas share is not drawn where the first of them is folded
    known = re.sub(r"\\(begin|end)\{aligned\}", r"\\\1{align*}", latex)  # ziamath knows it by its other name
    markup = Latex(known, size=_SIZE, color="currentColor", inline=not block).svg()
    found = _SVG.match(markup)
    if found is None or float(found[1]) <= 2:  # its margin alone
        raise ValueError(f"nothing was drawn for the formula {latex!r}")
    width, height, top = (float(length) for length in found.groups())
    style = f"width:{width / _EM:.3f}em;height:{height / _EM:.3f}em;vertical-align:{-(top + height) / _EM:.3f}em"
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

"""The CSS of boxes and panels as style elements."""

from __future__ import annotations

import re
from pathlib import Path


def _read_style(*names: str) -> str:
    """Return stylesheets, without comments, as one style element.

    Every output that needs them contains them, so that it looks the same when the notebook is
    opened again or exported.
    """
    text = "".join(
        Path(__file__).with_name(f"{name}.css").read_text(encoding="utf-8") for name in names
    )
    lean = re.sub(r"/[*].*?[*]/|\n *", " ", text, flags=re.DOTALL).strip()
    return f"<style>{lean}</style>"


BOX_STYLE, PANEL_STYLE = _read_style("box"), _read_style("box", "panel")

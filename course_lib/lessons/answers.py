"""Answers that run before their prediction was made, as after Run all: the output stays closed until the prediction, or a click.

JupyterLab sends a cell's metadata along with its code, and ``authoring/notebooks.py`` names there the predictions that the cell answers. A
front end that sends none, and a run without one, shows every answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from IPython.core.getipython import get_ipython
from IPython.display import HTML, DisplayHandle

from course_lib.base import runtime
from course_lib.learner import progress
from course_lib.lessons.panel_page import BOX_STYLE

METADATA = "predictions"  # of a cell: the ids of the predictions that it answers

# The first output of a closed answer. While its fold is closed, CSS hides the outputs that stand beside it.
_CLOSED = f"""{BOX_STYLE}<style>
.jp-OutputArea:has(> .jp-OutputArea-child .course-closed:not([open])) > .jp-OutputArea-child:not(:has(.course-closed)) {{ display: none; }}
</style><details class="course-box open course-closed"><summary><b>Answer.</b> Predict first, or open it here.</summary></details>"""

_shown: set[str] = set()  # in this session, with or without a prediction
_closed: list[tuple[frozenset[str], DisplayHandle]] = []


def close_answers() -> None:
    """From here on, the notebook that runs this closes answers; outside of a notebook nothing happens."""
    shell: Any = get_ipython()
    if runtime.in_notebook() and hasattr(shell, "get_parent"):
        shell.events.register(
            "pre_run_cell", lambda info: _close(shell.get_parent().get("metadata", {}).get(METADATA, ()))
        )


def _close(predictions: Sequence[str]) -> None:
    waiting = frozenset(predictions) - _shown - progress.read_predictions().keys()
    if waiting:
        mark = DisplayHandle()
        mark.display(HTML(_CLOSED))
        _closed.append((waiting, mark))


def open_answers(prediction_id: str) -> None:
    """The answer of this prediction was shown: outputs that waited for it, and for no other, open."""
    _shown.add(prediction_id)
    for waiting, mark in list(_closed):
        if waiting <= _shown | progress.read_predictions().keys():
            _closed.remove((waiting, mark))
            mark.update(HTML(""))

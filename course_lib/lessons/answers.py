"""Keep the output of an answer cell closed until the learner has predicted, or clicks. After "Run
all", answers run before predictions.

JupyterLab sends a cell's metadata along with its code. ``authoring/notebooks.py`` writes into the
metadata which predictions the cell answers. If a front end sends no metadata, or there is no front
end, every answer is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from IPython.core.getipython import get_ipython
from IPython.display import HTML, DisplayHandle

from course_lib.base import runtime
from course_lib.base.translation import gettext as _
from course_lib.learner import progress
from course_lib.lessons.stylesheets import BOX_STYLE

# key in a cell's metadata: the ids of the predictions that the cell answers
METADATA = "predictions"

# The first output of a closed answer is a fold. While it is closed, CSS hides the cell's other
# outputs.
_CLOSED_STYLE = f"""{BOX_STYLE}<style>
.jp-OutputArea:has(> .jp-OutputArea-child .course-closed:not([open])) > .jp-OutputArea-child:not(:has(.course-closed)) {{ display: none; }}
</style>"""  # noqa: E501

# predictions whose answer was shown in this session, whether or not the learner predicted
_shown: set[str] = set()
_closed: list[tuple[frozenset[str], DisplayHandle]] = []


def close_answers() -> None:
    """Close the answers of all cells that run after this call. Do nothing outside of a notebook."""
    shell: Any = get_ipython()
    if runtime.in_notebook() and hasattr(shell, "get_parent"):
        shell.events.register(
            "pre_run_cell",
            lambda info: _close(shell.get_parent().get("metadata", {}).get(METADATA, ())),
        )


def _close(predictions: Sequence[str]) -> None:
    waiting = frozenset(predictions) - _shown - progress.read_predictions().keys()
    if waiting:
        mark = DisplayHandle()
        mark.display(HTML(_CLOSED_STYLE + _write_fold()))
        _closed.append((waiting, mark))


def _write_fold() -> str:
    words = _("<b>Answer.</b> Predict first, or open it here.")
    return f'<details class="course-box open course-closed"><summary>{words}</summary></details>'


def open_answers(prediction_id: str) -> None:
    """Note that the answer of this prediction was shown, and open the outputs that now wait for no
    prediction."""
    _shown.add(prediction_id)
    for waiting, mark in list(_closed):
        if waiting <= _shown | progress.read_predictions().keys():
            _closed.remove((waiting, mark))
            mark.update(HTML(""))

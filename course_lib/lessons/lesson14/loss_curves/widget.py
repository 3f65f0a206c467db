"""Lesson 14: the losses of one training with two norms, their difference, and the step at which
they separate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from IPython.display import DisplayHandle, display

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.words import list_words
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.lesson14.loss_curves.model import make_data

_FEED = 10  # steps between two updates of the picture while losses come in


class LossCurves:
    """A picture that compares each of ``runs`` with the first; :meth:`add` appends losses during a
    training."""

    def __init__(
        self,
        runs: Mapping[str, Iterable[float]],
        steps: int,
        baseline: float | None,
        show: str | None,
    ):
        self.runs = {name: [float(loss) for loss in losses] for name, losses in runs.items()}
        self.steps = steps
        names = list(self.runs)
        if len(names) < 2:
            raise CourseError(
                _("loss_curves needs two runs at least: the one to compare with, and another.")
            )
        if show is not None and show not in names[1:]:
            words = _("loss_curves has no run {show!r} to show; there are {known}.")
            raise CourseError(words.format(show=show, known=list_words(names[1:])))
        self._baseline, self._show = baseline, show or names[1]
        self._handle: DisplayHandle | None = None

    @property
    def picture(self) -> MovingPicture:
        """Return the picture of the losses so far."""
        reference, *other_names = self.runs
        words = _(
            "Losses by step of {first} and of {others}, and below, on a logarithmic axis, how far"
            " each is from {first}."
        )
        data = make_data(self.runs, self.steps, self._baseline, self._show)
        return MovingPicture(
            "loss_curves", data, words.format(first=reference, others=list_words(other_names))
        )

    def add(self, run: str, loss: float) -> None:
        """Append the next loss of ``run``. The picture is updated at every tenth loss and at the
        last.

        Raises: KeyError if there is no such run.
        """
        losses = self.runs[run]
        losses.append(float(loss))
        if self._handle is not None and (len(losses) % _FEED == 0 or len(losses) == self.steps):
            self._handle.update(self.picture)

    def _ipython_display_(self) -> None:
        self._handle = display(self.picture, display_id=True)


def loss_curves(
    runs: Mapping[str, Iterable[float]],
    steps: int | None = None,
    baseline: float | None = None,
    show: str | None = None,
) -> LossCurves:
    """Show the losses of one training with several norms, each run compared with the first. ``add``
    appends losses during a training.

    Args:
        runs: losses by name, in nats per character; the first is the reference. A run may start
            empty.
        steps: number of steps of the training; None takes that of the longest run.
        baseline: a loss to beat, drawn as a line.
        show: the run that is shown at the start; None takes the second of ``runs``.

    Raises: CourseError if there are fewer than two runs, or no steps.
    """
    runs = {name: list(losses) for name, losses in runs.items()}
    steps = steps or max((len(losses) for losses in runs.values()), default=0)
    if steps < 1:
        raise CourseError(
            _(
                "loss_curves has nothing to draw: no run has a step. Say with `steps` how many"
                " there will be."
            )
        )
    return LossCurves(runs, steps, baseline, show)

"""What the rows look like that enter the norms of three small models, from the file that
``authoring/norm_inputs.py`` stores."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_

STORED = Path(__file__).with_suffix(".json")
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
TRAINED, UNTRAINED = N_("lesson 14, trained"), "lesson 14, untrained"


@dataclass(frozen=True)
class NormInput:
    """The rows that enter one norm of a model.

    Attributes:
        M, N: number of rows and columns.
        mean_over_std, rms: of |mean|/std and of the root mean square of a row, the QUANTILES over
            the rows.
        largest_column: the root mean square of the largest column over that of the median column.
    """

    model: str
    norm: str
    M: int
    N: int
    mean_over_std: list[float]
    rms: list[float]
    largest_column: float


@dataclass(frozen=True)
class NormInputs:
    """The rows of all norms that were measured, the date, and the packages that have the models
    trained by others."""

    date: str
    packages: list[dict[str, str]]
    norms: list[NormInput]

    def of(self, model: str) -> list[NormInput]:
        """Return the norms of ``model`` in the order in which it runs them."""
        return [norm for norm in self.norms if norm.model == model]

    def label(self) -> str:
        """Write the origin of the numbers for a figure."""
        models_text = _(", ").join(
            _("{model} from {package} {version}").format(**package) for package in self.packages
        )
        return _("Measured {date} on a CPU; {made}").format(date=self.date, made=models_text)


def read_norm_inputs() -> NormInputs:
    """Read the stored measurement."""
    data = json.loads(STORED.read_text(encoding="utf-8"))
    return NormInputs(data["date"], data["packages"], [NormInput(**norm) for norm in data["norms"]])

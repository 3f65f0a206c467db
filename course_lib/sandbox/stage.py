"""How far a check has come. Server and runner both say it in these words."""

from __future__ import annotations

from enum import StrEnum

STOP = "stop"  # a file of this name in a job's folder ends the job, as if its time were over


class Stage(StrEnum):
    """What the process that runs a submission is at. Which case it is at is said apart, and only while it runs them."""

    STARTING = "starting"  # it is confined and loads what it needs; the submission has not been looked at
    IMPORTING = "importing"  # it imports the submission
    RUNNING = "running"  # it has begun a case

"""The stages of a check, by the names that server and runner use."""

from __future__ import annotations

from enum import StrEnum

STOP = "stop"  # a file of this name in a job's folder ends the job as at its time limit


class Stage(StrEnum):
    """A stage of the process that runs a submission. The number of the running case is reported
    separately."""

    # the process is confined and imports libraries; it has not read the submission yet
    STARTING = "starting"
    IMPORTING = "importing"  # the process imports the submission
    RUNNING = "running"  # the process has begun a case

"""Grading: the parent holds the oracle and judges; a child process runs the learner's code and is never believed.

``check.check`` is the one entry. Lessons find it, and what else they need, in ``public``. What a file goes through, room by
room: ``submission`` takes the code out of it, ``families`` makes the cases concrete (inputs, launch, expected outputs),
``sandbox`` runs the code apart and brings bytes back, ``judging`` compares them and names the cause, ``verdict`` carries the
result, ``report`` puts it into words.
"""

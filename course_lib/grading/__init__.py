"""Grading: a child process runs the learner's code. The parent process knows the expected outputs
and judges the child's bytes.

The child's own report is no evidence. ``check.check`` is the only entry. Lessons import it, and all
else that they need, from ``public``. A submitted file passes through these parts in order:
``submission`` cuts the code out of it, ``plans`` makes the cases concrete (inputs, launch, expected
outputs), ``sandbox`` runs the code in a confined process and returns bytes, ``judging``
compares the bytes and names the cause, ``verdict`` carries the result, ``report`` puts it into
words.
"""

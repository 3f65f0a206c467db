"""Grading: the parent holds the oracle and judges; a child process runs the learner's kernel and is never believed.

``check`` is the one entry. What it goes through, in order: ``extract`` takes the kernels out of the file, ``plans`` make
cases concrete (inputs, launch, expected outputs), ``runner`` starts and watches the child, ``judge`` compares bytes,
``diagnosis`` names the cause, ``verdict`` carries the result.
"""

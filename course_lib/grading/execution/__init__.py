"""Run a learner's code in a separate process, and return the bytes of its outputs."""

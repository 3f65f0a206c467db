"""The schedule explorer: step through a real interleaving of a kernel's programs, also of the
learner's own kernel."""

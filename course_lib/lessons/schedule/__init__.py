"""The schedule explorer: step through a real interleaving of a kernel's programs, the learner's own kernel included."""

"""The learner's own things: exercise files, progress, and an update that leaves both alone."""

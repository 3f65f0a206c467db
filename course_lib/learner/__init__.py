"""What belongs to the learner: the exercise files, the progress, and the update that leaves both alone."""

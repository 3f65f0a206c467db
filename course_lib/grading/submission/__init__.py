"""Read a learner's file without running it, and find the code that the exercise asks for."""

"""Takes a learner's file in: reads it without running it, and finds in it what the exercise asks for."""

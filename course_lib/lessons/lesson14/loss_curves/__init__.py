"""Lesson 14: the losses of one training with two norms, their difference, and the step at which
they separate."""

"""Lesson 14: losses of the same training with two norms, their difference on an axis of its own, and where they part."""

"""Lesson 03: Welford within blocks, Chan's merge between them, one step a frame, with count, mean and M2 of every node."""

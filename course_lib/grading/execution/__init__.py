"""Runs what a learner wrote apart from everything else, and brings back bytes."""

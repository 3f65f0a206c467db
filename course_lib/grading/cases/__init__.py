"""What one case of an exercise is: its shape and values, its buffers, its plan; and the hidden ones of an instructor."""

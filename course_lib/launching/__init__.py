"""The launch of a kernel as typed data, what can go wrong in it, and the way to run it in the
interpreter."""

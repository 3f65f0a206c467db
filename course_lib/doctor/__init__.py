"""`course doctor`: looks at machine and environment, and says what to do about what it finds."""

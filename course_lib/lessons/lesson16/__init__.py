"""What lesson 16 alone uses."""

"""What lesson 06 alone uses."""

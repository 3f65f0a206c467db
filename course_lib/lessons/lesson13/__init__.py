"""What lesson 13 alone uses."""

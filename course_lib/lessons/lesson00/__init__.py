"""What lesson 00 alone uses."""

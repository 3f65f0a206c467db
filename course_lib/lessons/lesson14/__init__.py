"""What lesson 14 alone uses."""

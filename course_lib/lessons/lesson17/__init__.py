"""What lesson 17 alone uses."""

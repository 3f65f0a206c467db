"""What lesson 15 alone uses."""

"""What lesson 18 alone uses."""

"""What lesson 04 alone uses."""

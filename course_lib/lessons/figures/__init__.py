"""The charts of the lessons, one file per lesson."""

"""The still figures of the lessons, one file per lesson."""

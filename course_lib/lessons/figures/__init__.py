"""The still figures of the lessons, a file a lesson."""

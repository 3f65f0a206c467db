"""The `course` command: its commands, what they print, and where they exit."""

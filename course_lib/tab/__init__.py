"""The course in a browser tab: stand-ins for packages that cannot run in a browser."""

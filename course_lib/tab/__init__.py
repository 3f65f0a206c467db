"""The course in a browser tab: what stands in there for what a browser does not have."""

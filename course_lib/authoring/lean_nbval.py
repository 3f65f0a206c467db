"""A pytest plugin for runs of notebooks. It is loaded before nbval, and keeps out what that brings
along and no notebook needs."""

import sys

# To read a notebook, nbformat imports jsonschema, and that a grammar which is compiled anew in each
# process: for a second, to check "iri", a format that the schema of notebooks does not name.
# Without the grammar jsonschema knows one format less.
sys.modules.setdefault("rfc3987_syntax", None)  # pyright: ignore[reportArgumentType]

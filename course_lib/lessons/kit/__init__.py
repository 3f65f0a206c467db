"""Moving pictures: one self-contained output of a cell, drawn in the browser. ``docs/architecture.md`` says why it is done so."""

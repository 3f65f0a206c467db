"""Moving pictures: each is one self-contained output of a cell, drawn in the browser.
``docs/architecture.md`` gives the reasons."""

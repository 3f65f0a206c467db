"""``make site``: the course as a web site that works from a folder without a network.

``build`` stages the pages and has Sphinx with myst-nb make them; ``lessons`` turns a built notebook
into a page, ``guides`` a document of the repository, ``front`` writes the first page, ``formulas``
draws what stands between dollar signs. docs/site.md says why these tools.
"""

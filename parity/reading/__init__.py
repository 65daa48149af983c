"""The page "four columns, one Transformer": a static site, and its server.

``sources`` reads the four folders and lays their lines side by side,
``values`` runs the shipped model, ``formulas``, ``diagram`` and ``breaking``
show what was found, ``navigation`` and ``index`` lead to it, ``pages`` writes
the site and ``serving`` answers a browser.
"""

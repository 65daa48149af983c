"""Other libraries' own models, run live beside ours.

Each is made with random weights of many sizes, in float64; its weights then go
into our four, and ours into it. They are installed by the extra ``peers``.
"""

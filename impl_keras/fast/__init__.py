"""The fast form of the port: the same answers, made for speed."""

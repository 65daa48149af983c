"""One model asked in several ways, none of which may change its answer."""

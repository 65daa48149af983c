"""For tests of your own: ``assert_parity(actual, expected)``."""

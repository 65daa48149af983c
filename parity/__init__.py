"""The harness: it runs the reference and the ports, and compares."""

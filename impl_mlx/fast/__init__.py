"""The fast form of the port, which so far is the readable one."""

"""One module a form of log; each is found by its class."""

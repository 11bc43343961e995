"""One module a style of injection."""

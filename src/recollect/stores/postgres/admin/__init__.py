"""Setting a server up, and looking at it."""

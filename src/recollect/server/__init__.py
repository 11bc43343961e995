"""A memory for other processes. Each module imports its own heavy libraries, so import only what is served."""

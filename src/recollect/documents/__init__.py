"""Documents: reading files of several formats, and cutting them into passages that can be searched."""

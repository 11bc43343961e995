"""Models that make vectors and models that write, here and elsewhere."""

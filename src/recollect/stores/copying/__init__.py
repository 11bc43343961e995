"""From any store to any other."""

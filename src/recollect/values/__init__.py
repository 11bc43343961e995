"""Values that everything shares."""

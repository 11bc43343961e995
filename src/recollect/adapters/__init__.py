"""Memory in other people's clients and frameworks."""

"""A memory on a server, by the same verbs. What can be called is one list, which the server reads too."""

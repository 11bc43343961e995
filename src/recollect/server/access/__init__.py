"""Who may what: keys for programs, people who log in, and what each of them sees."""

"""Decisions as pure functions of values and `now`: what fades, expires, matters, ranks, and what is a secret."""

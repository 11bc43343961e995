"""Proof, on a deployment of one's own, of what is claimed of it."""

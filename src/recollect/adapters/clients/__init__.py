"""Clients of model providers, with memory put in."""

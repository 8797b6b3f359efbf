"""Layouts: the formats of session stores, their rules, and their checks."""

"""Durable-file engine: the only package that writes files."""

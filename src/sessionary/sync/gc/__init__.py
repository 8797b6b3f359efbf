"""Garbage collection: unreachable blocks and old generations are counted, and removed where a store supports it."""

"""Garbage collection: blocks and generations that no head reaches are counted, and removed where a store can."""

"""Remotes: each speaks the five verbs of `sync.remote` to one kind of store, and knows nothing of sessions."""

"""Sessions of agent frameworks: an append-only journal of records for each session."""

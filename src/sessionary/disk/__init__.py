"""The durable-file engine: the only room that touches the file system."""

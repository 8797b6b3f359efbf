"""What is on disk, what is legal there, how a broken one is told."""

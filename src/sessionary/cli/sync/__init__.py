"""The commands of `sessionary sync`: they select sessions, synchronise them, and print the result."""

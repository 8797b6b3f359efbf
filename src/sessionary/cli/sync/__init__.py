"""The commands of `sessionary sync`: they choose what to carry, and tell what became of it."""

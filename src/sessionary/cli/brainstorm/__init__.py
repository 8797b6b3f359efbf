"""The commands of `sessionary brainstorm`, in modules that are imported when one of them is called."""

"""The commands of `sessionary feature`, in modules that are imported when one of them is called."""

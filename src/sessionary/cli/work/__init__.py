"""Commands on work sessions: `sessionary work …`, and the same as `maestro wsession …`.

Each command is a module of its own, imported when it is called. Columns, labels and flags are those of the
original program, so that scripts keep working; missing or wrong output of the original is completed.
"""

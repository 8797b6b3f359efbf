"""Work sessions on the command line: `sessionary work …`, and the same as `maestro wsession …`.

Each command lies in a module of its own, imported when it is called. Columns, labels and flags are those of the
original, so that eyes and scripts find what they know; where it was silent about something, or wrong, we say more.
"""

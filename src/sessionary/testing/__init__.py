"""Test suites for other people's layouts and remotes, and the demo.

pytest is not imported.

layout_suite      the tests that every layout must pass
remote_suite      the tests that every remote of `sync` must pass
cursors           reading in pieces is reading as a whole
wrapper           an `Fs` around another one, for doubles
demo, sync_demo   the acts of `sessionary demo`
"""

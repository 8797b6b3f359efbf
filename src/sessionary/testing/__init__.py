"""Test suites for other people's layouts and remotes, and the demo.

hypothesis is imported only by `strategies`, pytest never.

layout_suite
    the tests that every layout must pass
remote_suite
    the tests that every remote of `sync` must pass
strategies
    Hypothesis strategies for messages, metadata and events with nasty text
wrapper
    an `Fs` around another one, for doubles
demo, sync_demo
    the acts of `sessionary demo`
"""

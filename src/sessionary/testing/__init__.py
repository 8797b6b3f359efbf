"""The proof kit: what the tests of Sessionary use to prove its promises, for the tests of others as well.

Whoever writes a remote, an importer or a layout of their own can hold it to the same suites. Nothing here is
imported by the rest of the package. hypothesis is imported only when a strategy is asked for, pytest never.

recorder
    an `Fs` that writes down every change in program order
survivors
    the states that a power cut may leave of it, in three models of a disk
sweeps
    check every such state, for an operation or for any two in a row
faults
    an `Fs` that fails or dies at the n-th call, and the sweep over all n
planted
    five writers with a known bug each, to test the tests
conformance
    the suite that every `Fs` must pass
remote_suite
    the suite that every remote of `sync` must pass
chaos_remote
    a remote that fails, forgets answers and kills its caller
backed_up
    a remote in memory that is put back to a backup, or emptied
sync_world
    devices around a remote, their users, and what must be true when the dust has settled
torture
    real processes that are really killed
original
    the reading rules of the original amplifier tools: would they accept what we write?
strategies
    Hypothesis strategies for messages, metadata and events with nasty text
"""

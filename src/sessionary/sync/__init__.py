"""Sessions on every machine: what is here carried to a remote and back, without a word lost or doubled.

blocks, heads
    what lies on the other side: immutable ranges of files, and one small record for each session
remote, remotes/
    the five verbs that a store must offer, the sixth that it may, and the stores that do
state
    what this machine remembers of the other side; disposable
survey, bundles, copies, redaction
    what is here, as it is carried
arriving, incoming, comparing
    what is there, and who is right about each file
merging, owners
    two versions of a journal in one; which device writes a ledger
pushing, assuring, pulling, placing, writing, engine
    the work; `engine.Engine` is the face
waiting
    files in two versions, about which only a person can decide
reach, leftovers, removed, removal
    what no head leads to any more: counted, and removed where a store offers that
rules, identity
    what is carried, and what projects are called on all machines

The engine knows sessions only through `layouts.base`; remotes do not know them at all.
"""

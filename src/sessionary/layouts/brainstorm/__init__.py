"""Brainstorm sessions, version 1.2: `<project>/.project-memory/brainstorm-sessions/<slug>.yaml`.

docs/formats/brainstorm.md describes the format and how it is read. `BrainstormStore` is the interface;
`messages` has the texts of a launch and a step back, in English and French.
"""

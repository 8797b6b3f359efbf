"""Brainstorm sessions, version 1.2: `<project>/.project-memory/brainstorm-sessions/<slug>.yaml`.

docs/formats/brainstorm.md describes the format and how it is read. `BrainstormStore` is the interface;
`messages` has the texts of a launch and a step back, in English and French.
"""

from sessionary.layouts.brainstorm.maintenance import Cleaned, MigratedFile
from sessionary.layouts.brainstorm.navigation import Jump
from sessionary.layouts.brainstorm.reading import Row
from sessionary.layouts.brainstorm.session import Brainstorm
from sessionary.layouts.brainstorm.store import BrainstormStore, Found

__all__ = ["Brainstorm", "BrainstormStore", "Cleaned", "Found", "Jump", "MigratedFile", "Row"]

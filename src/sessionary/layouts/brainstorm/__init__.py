"""Brainstorm sessions, version 1.2: `<project>/.project-memory/brainstorm-sessions/<slug>.yaml`.

The format and each reading of it are told in docs/formats/brainstorm.md. `BrainstormStore` is the face; `messages` has
what a launch and a step back show to a person, in English and French.
"""

from sessionary.layouts.brainstorm.maintenance import Cleaned, MigratedFile
from sessionary.layouts.brainstorm.navigation import Jump
from sessionary.layouts.brainstorm.queries import Found
from sessionary.layouts.brainstorm.reading import Row
from sessionary.layouts.brainstorm.session import Brainstorm
from sessionary.layouts.brainstorm.store import BrainstormStore

__all__ = ["Brainstorm", "BrainstormStore", "Cleaned", "Found", "Jump", "MigratedFile", "Row"]

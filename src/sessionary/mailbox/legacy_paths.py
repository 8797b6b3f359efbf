"""Messages that lie where the original puts them: those of a nested session in a folder of its id at the top.

The original nests the document of a child into its parent, but writes breadcrumbs to `<root>/<child>/breadcrumbs`, and
a grandchild it puts into `<root>/<child>/<grandchild>`, where the child itself is not. Both exist in real trees, so a
mailbox looks into both places.
"""

from __future__ import annotations

import os

from sessionary.layouts.maestro.names import BREADCRUMBS
from sessionary.mailbox.folders import Root


def roots_of(folder: str, top: str) -> list[Root]:
    """The `breadcrumbs` folders of the session in a folder: its own, and where it is nested the stray one.

    `top` is the folder that holds all sessions of its tree.
    """
    own = os.path.join(folder, BREADCRUMBS)
    stray = os.path.join(top, os.path.basename(folder), BREADCRUMBS)
    if stray == own:
        return [Root(own)]
    return [Root(own), Root(stray, os.path.relpath(stray, own).replace(os.sep, "/") + "/")]

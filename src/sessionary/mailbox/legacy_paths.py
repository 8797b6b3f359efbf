"""Messages of nested sessions in the places that Maestro uses: a folder of the session's id at the top.

Maestro nests the document of a child in its parent, but writes breadcrumbs to `<root>/<child>/breadcrumbs`,
and puts a grandchild into `<root>/<child>/<grandchild>`, where the child itself is not. Both exist in real
trees, so a mailbox reads both places.
"""

from __future__ import annotations

import os

from sessionary.layouts.maestro.names import BREADCRUMBS
from sessionary.mailbox.folders import Root


def roots_of(folder: str, top: str) -> list[Root]:
    """The `breadcrumbs` folders of the session in a folder: its own, and the legacy one if it is nested.

    `top` is the folder that contains all sessions of its tree.
    """
    own = os.path.join(folder, BREADCRUMBS)
    stray = os.path.join(top, os.path.basename(folder), BREADCRUMBS)
    if stray == own:
        return [Root(own)]
    return [Root(own), Root(stray, os.path.relpath(stray, own).replace(os.sep, "/") + "/")]

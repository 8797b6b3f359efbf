"""Lazy loading of public names, and precedence between packages of the same import name.

`on_demand` returns the functions of a package whose names are imported from their modules at first use. It keeps the
start of commands fast, and a program that uses one name does not load all the others.

`give_way` handles import names that other packages may own. Our packages are last in `sys.path`, so an installed
package of that name precedes them. Editable installations of other build tools are an exception: their finder comes
after the path finder. Our package then loads theirs in its own place.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from sys import modules
from typing import Any


def on_demand(
    package: str, exports: Mapping[str, str], loaded: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return the `__getattr__`, the `__dir__` and the `__all__` of a package.

    Args:
        exports: for each module, with a dot in front if it is relative, the names that it exports, with blanks between.
    """
    owners = {name: module for module, names in exports.items() for name in names.split()}
    exported = sorted([*owners, *loaded.split()])

    def look_up(name: str) -> Any:
        if name not in owners:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(owners[name], package), name)
        setattr(modules[package], name, value)  # later look-ups find the attribute
        return value

    return look_up, lambda: exported, exported


def give_way(package: str) -> bool:
    """Load the package that a later finder has under this name, in place of the importing one.

    Returns False if there is none: the importing package stays. Errors of the other package are raised.
    """
    # Imported here: every command loads this module, few call this function.
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    finders: list[Any] = list(sys.meta_path)
    behind_us = finders[finders.index(PathFinder) + 1 :] if PathFinder in finders else []
    for finder in behind_us:
        spec = finder.find_spec(package, None)
        if spec is not None and spec.loader is not None:
            modules[package] = module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return True
    return False

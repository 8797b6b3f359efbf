"""Under which names our packages are found, and when what is behind them is loaded.

`on_demand`: names that lie in rooms which are opened only when one of them is asked for. Start-up time is felt at
every command, and a program that wants one name should not wait for all the others.

`give_way`: import names that belong to somebody else. They stand last in `sys.path`, so whoever is found there comes
before us by itself. Editable installations of other build tools are not found there: they put a finder behind the one
that searches the path, and so behind us. Our package then steps aside when it is imported.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from sys import modules
from typing import Any


def on_demand(
    package: str, exports: Mapping[str, str], loaded: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, the `__dir__` and the `__all__` of a package.

    Args:
        package: its name.
        exports: for each module, with a dot in front if it is relative, the names that it exports, with blanks between.
        loaded: the names that the package itself defines.
    """
    owners = {name: module for module, names in exports.items() for name in names.split()}
    exported = sorted([*owners, *loaded.split()])

    def look_up(name: str) -> Any:
        if name not in owners:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(owners[name], package), name)
        setattr(modules[package], name, value)  # the next look-up does not come back here
        return value

    return look_up, lambda: exported, exported


def give_way(package: str) -> bool:
    """Load the package that another finder knows by this name in the place of the one that is being imported.

    Returns False if there is none; then the importing one is the package. What the other raises is raised.
    """
    # Here, since every start of a command loads this module and none comes this way.
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

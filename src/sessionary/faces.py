"""A package whose names lie in rooms that are opened only when one of them is asked for.

Start-up time is felt at every command, and a program that wants one name should not wait for all the others.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from sys import modules
from typing import Any


def on_demand(package: str, rooms: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and the `__dir__` of a package.

    Args:
        package: its name.
        rooms: for each public name the module that owns it.
    """

    def look_up(name: str) -> Any:
        room = rooms.get(name)
        if room is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(room), name)
        setattr(modules[package], name, value)  # the next look-up does not come back here
        return value

    def names() -> list[str]:
        return sorted(modules[package].__all__)

    return look_up, names

"""The end of an object: closed with its block, or reset in the child of a fork."""

import os
from collections.abc import Callable, Collection
from typing import Self, TypeVar

T = TypeVar("T")


class ClosedOnExit:
    """A context manager whose block ends with `close`."""

    def close(self) -> None:
        """Release what the object holds. Closing twice has no effect."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def reset_in_child(objects: Collection[T], reset: Callable[[T], object]) -> None:
    """Call `reset` for each of the objects that exist at a fork, in its child."""

    def after_fork() -> None:
        for each in list(objects):
            reset(each)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=after_fork)

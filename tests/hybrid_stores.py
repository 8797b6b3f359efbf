"""The tests of `SessionStore`, once more over a `HybridSessionStore` that has another side."""

import importlib.util
import tempfile
from pathlib import Path
from typing import Any, Self

from sessionary import HybridSessionStore
from sessionary.disk.fs import Fs
from tests.support.memory_remote import MemoryServer

TESTS = Path(__file__).resolve().parent


class Carried(HybridSessionStore):
    """A hybrid store that is made as a `SessionStore` is, with a side of its own in memory."""

    server = MemoryServer()
    state = tempfile.TemporaryDirectory()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        options |= {"remote": self.server.remote, "state_dir": self.state.name}
        super().__init__(*arguments, **options)

    @classmethod
    def with_fs(cls, fs: Fs, *arguments: Any, **options: Any) -> Self:
        """Over a double, which may die: background sync has died with it, or it would go on where it must not."""
        store = super().with_fs(fs, *arguments, **options)
        assert store._worker is not None
        store._worker.background.given_up.set()
        return store


def once_more(name: str, *, but: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The tests and fixtures of a module, as they are when `SessionStore` means `Carried`.

    Args:
        name: the file below `tests`.
        but: tests to leave out.
    """
    spec = importlib.util.spec_from_file_location(f"carried_{Path(name).stem}", TESTS / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert vars(module)["SessionStore"] is not Carried
    vars(module)["SessionStore"] = Carried
    assert but <= vars(module).keys()
    return {key: value for key, value in vars(module).items() if not key.startswith("__") and key not in but}

"""Resolution of session ids: complete ids and prefixes, in any case."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sessionary.errors import AmbiguousId

LATEST = "latest"
"""The word for the session that changed last, wherever an id is expected."""

_SHOWN = 20


def ids_named(word: str, ids: Iterable[str]) -> list[str]:
    """Return the ids that a word may mean.

    That is the one of exactly this text; else those of this text whatever its case; else those with this prefix; else
    those with this prefix in any case.
    """
    folded, known = word.casefold(), list(ids)
    ways: tuple[Callable[[str], bool], ...] = (
        lambda one: one == word,
        lambda one: one.casefold() == folded,
        lambda one: one.startswith(word),
        lambda one: one.casefold().startswith(folded),
    )
    return next((found for way in ways if (found := [one for one in known if way(one)])), [])


def one_named(word: str, ids: Iterable[str], what: str) -> str | None:
    """The one id that a word means, as `ids_named`; None if there is none.

    Args:
        what: what they name, for the message: ``features``.

    Raises:
        AmbiguousId: there are several; `details["matches"]` names them.
    """
    found = sorted(ids_named(word, ids)) if word else []
    if len(found) > 1:
        raise AmbiguousId(
            f"{len(found)} {what} begin with {word}",
            session=word,
            details={"matches": found[:_SHOWN], "count": len(found)},
            hint="give more of the id" + (f"; the first {_SHOWN} are shown" if len(found) > _SHOWN else ""),
        )
    return found[0] if found else None

"""Check for sessions and records that Gemini CLI refuses or does not list."""

from __future__ import annotations

from collections.abc import Iterator

from sessionary.layouts.agents.log_check import LogCheck
from sessionary.layouts.agents.patch_log import kind_of, versions
from sessionary.layouts.files import mended_copy
from sessionary.model import Problem, Record, SessionRef, Severity


class GeminiCheck(LogCheck):
    """A file without an id or without records, an id of another session, and rewinds to missing messages.

    Args:
        ref: the session.
    """

    def __init__(self, ref: SessionRef) -> None:
        super().__init__(ref, versions=True)
        self._known: set[str] = set()
        self._stated: str | None = None
        self._number = 0

    def stored(self, found: Record) -> None:
        super().stored(found)
        self._number += 1
        if self._stated is None and isinstance(found.value.get("sessionId"), str):
            self._stated = str(found.value["sessionId"])
        if kind_of(found.value) == "rewind" and (target := found.value["$rewindTo"]) not in self._known:
            words = f"a rewind to the message {target}, which is missing: Gemini CLI shows nothing before it"
            self.refuse("unknown_rewind", Severity.hides_data, found, words)
        self._known.update(key for key, _ in versions(found.value, self._number))

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        ref, stated = self.ref, self._stated
        if not self._number:
            words = "the file holds no record: Gemini CLI fails to resume by number while it is there"
            yield Problem.of_file("empty_file", Severity.stops_resume, ref.locator, words, "remove the file")
        elif stated is None:
            words = "no record states the id of the session: Gemini CLI does not list it"
            remedy = mended_copy(ref)
            yield Problem.of_file("no_header", Severity.stops_resume, ref.locator, words, remedy)
        elif not stated.startswith(ref.session_id) and "/" not in stated and "/chats/session-" in ref.locator:
            words = f"its records state the id {stated} instead of that in the name of the file"
            yield Problem.of_file("id_mismatch", Severity.note, ref.locator, words, "none needed")


def twins(ref: SessionRef, others: list[str]) -> Iterator[Problem]:
    """A problem if other files are named by the same id: Gemini CLI resumes one, and deletes both."""
    if others:
        words = f"{', '.join(others[:3])} has the same id in its name: Gemini CLI may resume or delete the wrong one"
        remedy = "`sessionary archive run` keeps a copy of both"
        yield Problem.of_file("id_clash", Severity.stops_resume, ref.locator, words, remedy)

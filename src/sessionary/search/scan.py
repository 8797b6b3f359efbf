"""Exact scan: each session is read by its layout, which decodes only stored lines that may match.

Damage never stops a search: it is reported where it may have hidden a match, and all other records are searched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache
from threading import Event
from typing import NamedTuple, cast

from msgspec import Struct, field

from sessionary.disk.fs import reason_of
from sessionary.errors import NotFound, StorageFailed
from sessionary.layouts.abilities import HasTitles, KeepsMessagesInLines
from sessionary.layouts.base import Layout, MayMatch
from sessionary.layouts.summary import summary_of
from sessionary.model import PERSON, Aside, Fact, Item, Message, Place, Problem, SessionRef, Severity, Skipped
from sessionary.redaction import Redaction
from sessionary.search.expression import Alternative
from sessionary.search.needle import Block, ByteFilter, LineFilter, Needle, Span, blocks, composed, one_spaced
from sessionary.search.pattern import Pattern
from sessionary.search.prefilter import looked_ahead
from sessionary.search.targets import Target
from sessionary.search.text_parts import CALL, TITLE, Piece, pieces
from sessionary.transcript.redacted import redacted_message, without_half_word

AROUND = 240
# Clocks of two machines differ, and a file may have been closed a little before its last message says.
_SLACK = 24 * 3600.0


class Query(Struct, frozen=True):
    """Search conditions. A hit meets all of them.

    Attributes:
        needles: the message contains all of these, each in any of its texts.
        roles: it has one of these roles; ``person``: the user wrote it.
        tools: it calls one of these tools, in any case; only the arguments are then searched.
        parts: search only these texts; see `Piece`.
        since: it is at or after this time.
        until: it is before this time.
        alternatives: it also meets one of these, if there are any; see `expression.parsed`.
        errors: it has the result of a tool that failed; only such results are then searched.
    """

    needles: tuple[Needle | Pattern, ...]
    roles: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()
    since: datetime | None = None
    until: datetime | None = None
    alternatives: tuple[Alternative, ...] = ()
    errors: bool = False


class Hit(Struct, frozen=True):
    """A message that matches.

    Attributes:
        ref: its session.
        index: its index among the readable records, from 0.
        place: where it is stored.
        role: its role; None if missing.
        person: True if the user wrote it.
        outside: True if it is outside of the conversation; `index` is then that of the message before it.
        time: its time, UTC; None if missing.
        about: its time, or that of the last earlier message with one.
        part: the kind of text that matches; ``title`` is not a message, and has the index 0.
        tool: the called tool, if the text is its arguments.
        text: an excerpt of that text, each run of blanks as one.
        marks: positions of the words in the excerpt.
        cut: whether text was omitted before and behind the excerpt.
    """

    ref: SessionRef
    index: int
    place: Place
    role: str | None
    person: bool
    outside: bool
    time: datetime | None
    about: datetime | None
    part: str
    tool: str | None
    text: str
    marks: list[Span]
    cut: tuple[bool, bool]


class SearchStats(Struct):
    """Statistics and problems of a search.

    Attributes:
        sessions: number of conversations that were searched to their end.
        bytes: the size of their files.
        older: number of conversations skipped because they last changed before the requested time.
        undated: number of messages skipped because neither they nor earlier ones have a time, and one was requested.
        damaged: unreadable ranges by session, where they may have hidden a match.
    """

    sessions: int = 0
    bytes: int = 0
    older: int = 0
    undated: int = 0
    damaged: list[tuple[SessionRef, Problem]] = field(default_factory=list)

    @property
    def problems(self) -> list[Problem]:
        """The problems without their sessions."""
        return [problem for _, problem in self.damaged]


class _AllSeen:
    """A predicate over the bytes of one session, in pieces: True once all needles of an alternative were seen."""

    def __init__(self, alternatives: Iterable[Sequence[ByteFilter]]) -> None:
        self._unseen = [list(some) for some in alternatives]

    def __call__(self, data: bytes) -> bool:
        for some in self._unseen:
            some[:] = [one for one in some if not one(data)]
        return not all(self._unseen)


class _Stopped(Exception):
    """The search was stopped while a session was read."""


class Search:
    """A search; `stats` is updated while `hits` is iterated.

    Args:
        query: the conditions.
        redaction: messages are matched, and hits are cut, after these rules: no hit depends on a secret. What
            `stats` says of damage still does.
    """

    def __init__(self, query: Query, redaction: Redaction | None = None) -> None:
        self.stats: SearchStats = SearchStats()
        self._query = query
        self._stopped = Event()
        self._redaction = redaction
        self._tools = frozenset(name.casefold() for name in query.tools)
        # A call without a tool name is shown as "?", which is not in the file.
        tools = [Needle(name) for name in query.tools if len(query.tools) == 1 and name != "?"]
        self._alternatives = [
            Alternative((*query.needles, *one.wanted), one.unwanted)
            for one in query.alternatives or (Alternative(()),)
        ]
        self._wanted = [Alternative(one.wanted) for one in self._alternatives]
        needles = [
            (*tools, *filter(None, (term.needle for term in one.wanted))) for one in self._alternatives
        ]
        self._filters = [ByteFilter(some) for some in needles]
        self._in_line = [LineFilter(some) for some in needles]
        self._each = [[ByteFilter([one]) for one in some] for some in needles]

    def _may_match(self, data: bytes) -> bool:
        """False if no record in these lines can be a hit."""
        return self._may_hold(data, self._filters)

    def _may_hold(self, data: bytes, filters: Iterable[Callable[[bytes], bool]]) -> bool:
        if self._stopped.is_set():
            raise _Stopped
        return any(may_hold(data) for may_hold in filters)

    def _of_layout(self, layout: Layout) -> MayMatch:
        """What shows that no line of a session of this layout can be a hit."""
        if not _has(layout, KeepsMessagesInLines):
            return self._may_match
        return lambda data: self._may_hold(data, self._in_line)

    def stop(self) -> None:
        """End `hits` soon, from any thread."""
        self._stopped.set()

    def hits(
        self, targets: Iterable[Target], *, passed: Callable[[int], object] | None = None
    ) -> Iterator[Hit]:
        """Yield the hits, session by session, each in the order of its conversation.

        Args:
            targets: the sessions.
            passed: called with the size in bytes of each finished conversation.
        """
        since = self._query.since
        oldest = None if since is None else since.timestamp() - _SLACK
        wanted = []
        for target in targets:
            if oldest is not None and target.changed is not None and target.changed < oldest:
                self.stats.older += 1
            else:
                wanted.append((target.size, target))
        for target, quiet in looked_ahead(wanted, self._is_quiet):
            if not quiet:
                yield from self._in_session(target)
            if self._stopped.is_set():
                return
            self.stats.sessions += 1
            self.stats.bytes += target.size
            if passed is not None:
                passed(target.size)

    def _is_quiet(self, target: Target, unused: Event) -> bool:
        """True if a session has nothing that may match, and nothing about it must be reported.

        Where a message may be stored in several lines, each with one of the words, the session must hold all of them.
        """
        if self._stopped.is_set():
            return False
        if any(one.blind for one in self._filters) or target.has_documents:
            return False
        try:
            if (title := _stated_title(target)) and self._may_match(title.encode("utf-8", "surrogatepass")):
                return False
            in_lines = _has(target.layout, KeepsMessagesInLines)
            wanted = self._of_layout(target.layout) if in_lines else _AllSeen(self._each)
            return self._lacks(target, wanted, unused)
        except (NotFound, StorageFailed, _Stopped):
            return False

    def _lacks(self, target: Target, wanted: Callable[[bytes], bool], unused: Event) -> bool:
        """True if no record of a session may hold what is wanted, and nothing about it must be reported."""

        def may_match(data: bytes) -> bool:
            return unused.is_set() or self._may_hold(data, (wanted,))

        found = target.layout.read(target.ref, None, may_match)
        return not any(isinstance(item, Message | Aside | Problem) for item in found)

    def _in_session(self, target: Target) -> Iterator[Hit]:
        """Yield the hits of one session, and note what may have hidden others."""
        try:
            yield from self._in_items(
                target, target.layout.read(target.ref, None, self._of_layout(target.layout))
            )
            if target.has_documents:
                problems = summary_of(target.layout, target.ref).problems
                self._note(target, [found for found in problems if found.severity > Severity.cosmetic])
        except _Stopped:
            return
        except NotFound:
            pass  # a session without a conversation, or moved to the trash meanwhile
        except StorageFailed as error:
            path, message = error.path or target.ref.locator, f"cannot be read: {reason_of(error)}"
            remedy = error.hint or "check its owner and mode"
            found = Problem.of_file("unreadable_file", Severity.stops_resume, path, message, remedy)
            self._note(target, [found])

    def _in_items(self, target: Target, items: Iterable[Item]) -> Iterator[Hit]:
        index, before = 0, None
        title: Fact | None = None
        for item in items:
            if isinstance(item, Fact) and item.name == "title" and (title is None or item.rank >= title.rank):
                title = item
            elif isinstance(item, Message):
                hit = self._hit(target, item, index, before)
                if hit is not None:
                    yield hit
                index, before = index + 1, item.time or before
            elif isinstance(item, Aside):
                hit = self._hit(target, item.message, max(index - 1, 0), before, outside=True)
                if hit is not None:
                    yield hit
            elif isinstance(item, Skipped):
                index, before = index + item.records, item.time or before
            elif isinstance(item, Problem) and item.severity > Severity.note and not target.has_documents:
                self._note(target, [item])
        words = _stated_title(target) or (None if title is None else title.value)
        if words and (hit := self._title_hit(target, words)) is not None:
            yield hit

    def _title_hit(self, target: Target, title: str) -> Hit | None:
        """Return the hit if the title of a session holds all words, and no condition on messages is asked for.

        A title has the time that lists show for its session.
        """
        query = self._query
        if query.roles or query.tools or query.errors or (query.parts and TITLE not in query.parts):
            return None
        if self._redaction is not None:
            title = self._redaction.text(without_half_word(title) or "")
        found = _best(self._alternatives, [Piece(TITLE, None, title)])
        if found is None:
            return None
        if (query.since or query.until) and not self._in_time(
            target, summary_of(target.layout, target.ref).updated
        ):
            return None
        _, excerpt = found
        place = Place(target.ref.locator)
        said = (excerpt.text, excerpt.marks, excerpt.cut)
        return Hit(target.ref, 0, place, None, False, False, None, None, TITLE, None, *said)

    def _note(self, target: Target, problems: Iterable[Problem]) -> None:
        self.stats.damaged += [(target.ref, one) for one in problems if one.code not in _HIDE_NO_TEXT]

    def _hit(
        self, target: Target, message: Message, index: int, before: datetime | None, *, outside: bool = False
    ) -> Hit | None:
        """Return the hit if the message meets all conditions; `before` is the time of the last earlier one with one."""
        roles, own = self._query.roles, message.time
        if roles and message.role not in roles and not (PERSON in roles and message.origin == PERSON):
            return None
        if self._redaction is not None:
            # Masking is slow, so first: the words are there at all. NOT is left to the masked text.
            if _best(self._wanted, self._texts(message)) is None:
                return None
            message = redacted_message(message, self._redaction)
        found = _best(self._alternatives, self._texts(message))
        if found is None or not self._in_time(target, own or before):
            return None
        piece, excerpt = found
        return Hit(
            target.ref,
            index,
            message.place,
            message.role,
            message.origin == PERSON,
            outside,
            own,
            own or before,
            piece.part,
            piece.tool,
            excerpt.text,
            excerpt.marks,
            excerpt.cut,
        )

    def _texts(self, message: Message) -> Iterator[Piece]:
        """Yield the texts to search."""
        query = self._query
        for piece in pieces(message, failed=query.errors):
            if query.tools and not (piece.part == CALL and (piece.tool or "").casefold() in self._tools):
                continue
            if not query.parts or piece.part in query.parts:
                yield piece

    def _in_time(self, target: Target, time: datetime | None) -> bool:
        """True if a message of this time is requested.

        A message without a time is older than its file, by an unknown amount.
        """
        since, until = self._query.since, self._query.until
        if time is not None:
            return (since is None or time >= since) and (until is None or time < until)
        if since is None and (
            until is None or (target.changed is not None and target.changed < until.timestamp())
        ):
            return True
        self.stats.undated += 1
        return False


def _stated_title(target: Target) -> str | None:
    """Return the title that the user gave, or that is stored beside the conversation; None without one."""
    if target.name is not None:
        return target.name
    layout = target.layout
    return cast("HasTitles", layout).stated_title(target.ref) if _has(layout, HasTitles) else None


def _has(layout: Layout, ability: type) -> bool:
    return _class_has(type(layout), ability)


@cache
def _class_has(layout: type[Layout], ability: type) -> bool:
    return isinstance(layout, ability)  # of a protocol this takes long, and a search asks it for each session


class _Excerpt(NamedTuple):
    """A piece of a text.

    Attributes:
        text: the piece, each run of blanks as one.
        marks: positions of the words in it.
        cut: whether text was omitted before and behind it.
    """

    text: str
    marks: list[Span]
    cut: tuple[bool, bool]


def _best(alternatives: Sequence[Alternative], texts: Iterable[Piece]) -> tuple[Piece, _Excerpt] | None:
    """Return the text with most of the terms, and an excerpt of it; None unless an alternative is met.

    Each term may be in any of the texts.
    """
    texts = list(texts)
    alternatives = [one for one in alternatives if all(_may_be_in(term, texts) for term in one.wanted)]
    if not alternatives:
        return None
    wanted = list(dict.fromkeys(term for one in alternatives for term in one.wanted))
    unwanted = list(dict.fromkeys(term for one in alternatives for term in one.unwanted))
    seen: set[Needle | Pattern] = set()
    best, most = None, -1
    for piece in texts:
        found, excerpt = _looked_into(piece.text, wanted)
        seen |= found
        if unwanted:
            seen |= _looked_into(piece.text, unwanted)[0]
        if len(found) > most:
            best, most = (piece, excerpt), len(found)
    met = (seen.issuperset(one.wanted) and seen.isdisjoint(one.unwanted) for one in alternatives)
    return best if any(met) else None


def _may_be_in(term: Needle | Pattern, texts: Sequence[Piece]) -> bool:
    """False if a term is in none of the texts; faster than to look for its places."""
    needle = term.needle
    return needle is None or any(needle.may_be_in(piece.text) for piece in texts)


def _looked_into(text: str, terms: Sequence[Needle | Pattern]) -> tuple[set[Needle | Pattern], _Excerpt]:
    """Return which terms are in a text, and the excerpt around the first of them."""
    needles = [term for term in terms if isinstance(term, Needle)]
    wanted = [needle for needle in needles if needle.may_be_in(text)]
    found: set[Needle | Pattern] = set()
    excerpt = None
    room = AROUND + max((len(needle.folded) for needle in needles), default=0)
    for block in blocks(text, 2 * room):
        spans = {needle: needle.spans(block.text) for needle in wanted}
        found |= {needle for needle, some in spans.items() if some}
        if excerpt is None:
            marks = _merged(span for some in spans.values() for span in some)
            # A mark near the end of a block is in the next one too, with more behind it.
            if block.is_last or not wanted or (marks and marks[0].end <= len(block.text) - AROUND):
                excerpt = _excerpt(block, marks)
        if excerpt is not None and len(found) == len(wanted):
            break
    assert excerpt is not None, "there is a last block"
    if len(needles) < len(terms):
        whole = composed(text)
        for term in terms:
            if isinstance(term, Pattern) and (span := next(term.spans(whole), None)) is not None:
                found.add(term)
                excerpt = excerpt if excerpt.marks else _around(whole, span)
    return found, excerpt


def _around(text: str, span: Span) -> _Excerpt:
    """Return the text around a match of a pattern, with each run of blanks as one."""
    start, end = max(span.start - AROUND, 0), min(span.end, span.start + AROUND) + AROUND
    before, found = text[start : span.start], text[span.start : min(span.end, span.start + AROUND)]
    lead = one_spaced(before + "|")[:-1]
    through = one_spaced(before + found + "|")[:-1]
    whole = one_spaced(text[start:end])
    mark = Span(min(len(lead), len(whole)), min(len(through), len(whole)))
    return _Excerpt(whole, [mark], (start > 0, end < len(text)))


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order, adjacent ones merged."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged


def _excerpt(block: Block, marks: list[Span]) -> _Excerpt:
    """Return the text around the first mark, cut between words if possible, with the marks in it."""
    text = block.text
    first = marks[0] if marks else Span(0, 0)
    start, end = max(first.start - AROUND, 0), min(first.end + AROUND, len(text))
    before, behind = start > 0 or not block.is_first, end < len(text) or not block.is_last
    if before and 0 <= (blank := text.find(" ", start, start + 20)) < first.start:
        start = blank + 1
    if behind and (blank := text.rfind(" ", max(end - 20, first.end), end)) >= 0:
        end = blank
    inside = [Span(m.start - start, m.end - start) for m in marks if m.start >= start and m.end <= end]
    return _Excerpt(
        text[start:end], inside, (not block.is_first or start > 0, not block.is_last or end < len(text))
    )


_HIDE_NO_TEXT = frozenset(
    "orphaned_call orphaned_result repeated_result duplicate_session parent_cycle slug_differs odd_name".split()
)
"""Problems that hide no text: about the conversation, a name or the tree of sessions."""

"""Search: messages that contain given words, by an exact scan of all conversations, without an index.

needle        words         -> the bytes to search for, and their positions in a text
text_parts    a message     -> the texts that are searched
targets       sessions      -> where to search, in order
prefilter     targets       -> those that plainly contain no match, found by threads
scan          targets       -> hits
"""

from sessionary.model import PERSON
from sessionary.search.needle import ByteFilter, Needle, Span, one_spaced
from sessionary.search.scan import Hit, Query, Search, SearchStats
from sessionary.search.targets import Target
from sessionary.search.text_parts import PARTS, Piece, pieces

__all__ = [
    "PARTS",
    "PERSON",
    "ByteFilter",
    "Hit",
    "Needle",
    "Piece",
    "Query",
    "Search",
    "SearchStats",
    "Span",
    "Target",
    "one_spaced",
    "pieces",
]

"""Search: messages that contain given words, by an exact scan of all conversations, without an index.

needle        words         -> the bytes to search for, and their positions in a text
text_parts    a message     -> the texts that are searched
fast_lines    recognises lines that are plainly records
prefilter     conversations -> those that plainly contain no match, found by threads
scan          conversations -> hits
"""

from sessionary.model import PERSON
from sessionary.search.needle import ByteFilter, Needle, Span, one_spaced
from sessionary.search.scan import Hit, Place, Query, Search, SearchStats
from sessionary.search.text_parts import PARTS, Piece, pieces

__all__ = [
    "PARTS",
    "PERSON",
    "ByteFilter",
    "Hit",
    "Needle",
    "Piece",
    "Place",
    "Query",
    "Search",
    "SearchStats",
    "Span",
    "one_spaced",
    "pieces",
]

"""Search: messages that contain given words, by an exact scan of all conversations, without an index.

needle        words         -> the bytes to search for, and their positions in a text
pattern       regular expressions, and the words that they contain
expression    words with AND, OR and NOT
text_parts    a message     -> the texts that are searched
targets       sessions      -> where to search, in order
prefilter     targets       -> those that plainly contain no match, found by threads
scan          targets       -> hits
"""

from sessionary.model import PERSON
from sessionary.search.expression import Alternative, parsed
from sessionary.search.needle import ByteFilter, Needle, Span, one_spaced
from sessionary.search.pattern import Pattern
from sessionary.search.scan import Hit, Query, Search, SearchStats
from sessionary.search.targets import Target
from sessionary.search.text_parts import PARTS, Piece, pieces

__all__ = [
    "PARTS",
    "PERSON",
    "Alternative",
    "ByteFilter",
    "Hit",
    "Needle",
    "Pattern",
    "Piece",
    "Query",
    "Search",
    "SearchStats",
    "Span",
    "Target",
    "one_spaced",
    "parsed",
    "pieces",
]

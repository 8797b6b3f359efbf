"""Search: which messages hold these words, over every conversation, read as they lie on the disk.

needle   words -> the bytes that may give them away, and their places in a text
words    a message -> the texts that are looked into
clean    which lines are plainly records
ahead    conversations -> those that plainly hold nothing, found by threads
scan     conversations -> hits
"""

from sessionary.search.needle import ByteFilter, Needle, Span, one_spaced
from sessionary.search.scan import PERSON, Hit, Place, Query, Search, SearchStats
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

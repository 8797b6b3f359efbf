"""Bytes and JSON values: what is written, and what can be read of what anybody wrote. Pure: no file is touched here.

sanitize     anything a program holds     -> JSON-able value     (the table of forms is in its module)
is_plain     anything a program holds     -> whether sanitize would leave it as it is
encode_line  JSON-able value              -> one line            encode_document: -> a whole file
decode       one line or file             -> value, or Undecodable
object_lines lines of JSON             -> how many, if plainly one object each
read_lines   a whole JSON Lines file      -> Reading: records, and the problems in between
split_glued  a damaged line               -> where whole records lie on it
snapshot     JSON-able value              -> a copy that tells by ``==`` whether the value has changed since
CODES        every code that a problem of a line file may have, with its severity

YAML has four modules of its own, imported from where they are: `yaml_read` (bytes -> value, refusing what asks for too
much), `yaml_write` (value -> bytes), `yaml_edit` (bytes and value -> bytes, with the comments kept) and `yaml_faults`
(everything that is wrong with a document, with its lines).
"""

from sessionary.codec.damage import split_glued
from sessionary.codec.decode import Undecodable, decode, original_accepts
from sessionary.codec.encode import encode_common_document, encode_document, encode_line, is_common
from sessionary.codec.lines import Reading, object_lines, read_lines
from sessionary.codec.problems import CODES, Code, Place, for_strict_reader, problem
from sessionary.codec.sanitize import is_plain, sanitize
from sessionary.codec.snapshot import NotPlain, snapshot

__all__ = [
    "CODES",
    "Code",
    "NotPlain",
    "Place",
    "Reading",
    "Undecodable",
    "decode",
    "encode_common_document",
    "encode_document",
    "encode_line",
    "for_strict_reader",
    "is_common",
    "is_plain",
    "object_lines",
    "original_accepts",
    "problem",
    "read_lines",
    "sanitize",
    "snapshot",
    "split_glued",
]

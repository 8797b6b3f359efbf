"""Conversion between bytes and JSON values, tolerant of damage. Pure: no module here accesses files.

sanitize        any Python value          -> JSON-able value  (see the table in its module)
encode_line     JSON-able value           -> one line         encode_document: -> a whole file
reencode_line   value of `decode`         -> one line         reencode_document: -> a whole file; NaN as text
decode          one line or file          -> value, or Undecodable; decode_object: -> dict, or None
object_lines    JSON lines                -> their number, if each is plainly one object
read_lines      a whole JSON Lines file   -> Reading: records, and the problems between them
split_glued     a damaged line            -> positions of the whole records on it
snapshot        JSON-able value           -> a copy that ``==`` compares with a later value
CODES           every problem code of a line file, with its severity

YAML has four modules, imported by their full names: `yaml_read` (bytes -> value, within limits), `yaml_write` (value
-> bytes), `yaml_edit` (bytes and value -> bytes, comments kept) and `yaml_faults` (all faults of a document, with
lines).
"""

from sessionary.codec.damage import split_glued
from sessionary.codec.decode import Undecodable, decode, decode_object, original_accepts
from sessionary.codec.encode import encode_document, encode_line, reencode_document, reencode_line
from sessionary.codec.lines import Reading, object_lines, read_lines
from sessionary.codec.problems import CODES, Code, Place, for_strict_reader, problem
from sessionary.codec.sanitize import sanitize
from sessionary.codec.snapshot import NotPlain, snapshot

__all__ = [
    "CODES",
    "Code",
    "NotPlain",
    "Place",
    "Reading",
    "Undecodable",
    "decode",
    "decode_object",
    "encode_document",
    "encode_line",
    "for_strict_reader",
    "object_lines",
    "original_accepts",
    "problem",
    "read_lines",
    "reencode_document",
    "reencode_line",
    "sanitize",
    "snapshot",
    "split_glued",
]

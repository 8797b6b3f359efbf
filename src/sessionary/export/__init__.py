"""Sessions in formats that other programs read, from one stream of steps.

steps      the stream: a session begins, its messages and problems, the sessions of its sub-agents, it ends
losses     what an export could not carry
masking    redaction of the stream, before any format sees it
formats    the formats by name; each is one module with `write`
markdown, html, json_document, jsonl, atif, sts, otel
           the formats
exact      what a message says beyond the fields of `atif` and `sts`, for an import without a difference

A format turns steps into lines, one step after the other, so an export needs no more memory than its longest message.
`atif` also holds back the steps from the oldest open call on, and `otel` the spans of a turn.
"""

from sessionary.export.formats import FORMATS, Format
from sessionary.export.losses import Loss, Report

__all__ = ["FORMATS", "Format", "Loss", "Report"]

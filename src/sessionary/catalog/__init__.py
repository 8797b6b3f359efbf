"""The catalogue: what earlier lists have read, in one SQLite file, so that the next one reads only what changed.

store    refresh the catalogue with the sessions of a layout
query    read it with SQL

Its tables are documented in `schema.sql`. Everything in it is derived from the sessions and can be read again, so it is
disposable: a catalogue that is missing, locked, damaged, of another version or not writable costs time and nothing
else. It holds paths and titles of sessions, but no messages.
"""

from sessionary.catalog.query import Rows, query
from sessionary.catalog.store import Catalog, Unread

__all__ = ["Catalog", "Rows", "Unread", "query"]

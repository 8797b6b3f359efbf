"""The MCP server: agents list, search, read, check and repair sessions with it. It calls `workspace`.

answers   JSON within a token budget, and what was cut of it
reading   the tools that only read
changing  repair, fork and rewind
server    the tools, described to clients; stdio
http      streamable HTTP on this machine, with a token

Needs the extra ``mcp``. Only `server` and `http` import its packages.
"""

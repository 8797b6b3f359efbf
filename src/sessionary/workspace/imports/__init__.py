"""Imports: sessions of other stores and of exports, stored as journals of records.

traces, simple_traces
             ATIF, STS
databases    databases of the OpenAI Agents SDK, of Google ADK, and, by its plug, of LangGraph
taking_over  what a file holds: sessions with their items and tables; writes them, each once
importing    recognises a file, and reports what was imported
"""

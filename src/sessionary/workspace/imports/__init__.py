"""Imports: sessions of other stores and of exports, taken over into journals of records.

sources      what a file holds: sessions, each with its items and tables
traces, simple_traces
             ATIF, STS
databases    databases of the OpenAI Agents SDK and of Google ADK
threads      databases of LangGraph, by its plug
taking_over  writes them, each once
importing    recognises a file, and reports what was imported
"""

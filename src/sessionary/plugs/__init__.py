"""Stores for agent frameworks: one module for each framework, over `layouts.records`.

No module here is imported by anything else, and each imports only its own framework.
"""

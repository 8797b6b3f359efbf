"""The compatibility checklist of the session analyst, over a store that has another side."""

from tests.hybrid_stores import once_more

globals().update(once_more("contract/test_checklist.py"))

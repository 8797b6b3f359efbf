"""What the disk refuses is refused alike by a store that has another side."""

from tests.hybrid_stores import once_more

globals().update(once_more("crash/test_store_faults.py"))

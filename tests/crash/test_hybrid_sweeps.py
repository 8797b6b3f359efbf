"""A save of a hybrid store is as durable as that of a `SessionStore`: the same sweeps, with another side behind it."""

import os

from tests.hybrid_stores import once_more

# Minutes of work, and each call by itself is swept anyway.
LONG = frozenset() if os.environ.get("SESSIONARY_SOAK") else frozenset({"test_pairs_of_calls"})

globals().update(once_more("crash/test_store_sweeps.py", but=LONG))

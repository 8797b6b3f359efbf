"""A hybrid store is a `SessionStore`: whatever is asked of that is asked of it, with another side behind it."""

from tests.hybrid_stores import once_more

# It counts descriptors at once; a hybrid store that is forgotten may be sending still. See `test_ending`.
NOT_AT_ONCE = frozenset({"test_a_file_system_that_is_forgotten_takes_its_descriptors_with_it"})

globals().update(once_more("unit/layouts/test_store.py", but=NOT_AT_ONCE))

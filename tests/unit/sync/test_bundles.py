"""A bundle means the same however its bytes are cut, and costs about the same."""

import time

import pytest

from sessionary.errors import Corrupt
from sessionary.sync.bundles import Item, pack_items, unpack_items

ITEMS = {
    Item("breadcrumbs/0/1.json", b'{"a": "\n"}'),
    Item("breadcrumbs/1/2.json", b"\xff\0 none"),
    Item("b/3.json", b""),
}


@pytest.mark.parametrize("size", [1, 2, 7, 40, 1000])
def test_it_may_be_cut_anywhere(size: int) -> None:
    data = b"".join(pack_items(ITEMS))
    cut = [data[at : at + size] for at in range(0, len(data), size)]
    assert set(unpack_items(cut)) == ITEMS
    assert set(unpack_items([b"", *cut, b""])) == ITEMS
    with pytest.raises(Corrupt, match="middle of a line"):
        list(unpack_items([*cut[:-1], cut[-1].removesuffix(b"\n"), b""]))


def test_a_long_line_in_many_small_blocks_is_not_copied_with_each_of_them() -> None:
    one = Item("breadcrumbs/0/1.json", b"x" * (32 << 20))
    data = b"".join(pack_items([one]))
    began = time.process_time()
    assert set(unpack_items(data[at : at + 256] for at in range(0, len(data), 256))) == {one}
    assert time.process_time() - began < 20, "it takes a second; copied each time, a quarter of an hour"

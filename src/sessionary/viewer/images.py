"""The images that a stored message holds. Only pixels are shown: an SVG is a document, and may hold scripts."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any, NamedTuple

from sessionary.codec import Undecodable, decode
from sessionary.errors import NotFound
from sessionary.model import Message, Other, ToolResult
from sessionary.viewer.library import Place

TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_TYPE_KEYS = ("media_type", "mediaType", "mimeType", "mime_type", "mime")
_DATA_KEYS = ("data", "base64", "url")
_DATA_URL = "data:image/"


class Image(NamedTuple):
    """An image: its media type, which is one of `TYPES`, and its bytes in Base64."""

    type: str
    encoded: str


def images_in(value: Any) -> Iterator[Image]:
    """The images in a decoded value, in its order."""
    if isinstance(value, list):
        for one in value:
            yield from images_in(one)
    elif isinstance(value, dict):
        found = _stated(value)
        if found is not None:
            yield found
            return
        for one in value.values():
            yield from images_in(one)
    elif isinstance(value, str) and value.startswith(_DATA_URL):
        found = _of_url(value)
        if found is not None:
            yield found


def _stated(value: dict[str, Any]) -> Image | None:
    """The image of an object that names its media type beside its data."""
    kind = next((value[key] for key in _TYPE_KEYS if isinstance(value.get(key), str)), None)
    if kind not in TYPES:
        return None
    data = next((value[key] for key in _DATA_KEYS if isinstance(value.get(key), str)), None)
    if data is None:
        return None
    return _of_url(data) if data.startswith("data:") else Image(kind, data)


def _of_url(url: str) -> Image | None:
    head, _, data = url.partition(",")
    kind = head.removeprefix("data:").partition(";")[0]
    return Image(kind, data) if head.endswith(";base64") and kind in TYPES else None


def images_of(part: Any) -> int:
    """How many images a part of a message shows."""
    if isinstance(part, ToolResult):
        return 0 if isinstance(part.stored, str) else sum(1 for _ in images_in(part.stored))
    if not isinstance(part, Other):
        return 0
    return int("image" in part.kind.lower()) if part.value is None else sum(1 for _ in images_in(part.value))


def image_at(place: Place, message: Message, number: int) -> tuple[str, bytes]:
    """The media type and the bytes of an image of a message, counted from 0 over its parts.

    Raises:
        NotFound: it is stored elsewhere, or in a form that is not shown.
    """
    shown = [part for part in message.parts if images_of(part)]
    values = [
        part.stored if isinstance(part, ToolResult) else part.value if isinstance(part, Other) else None
        for part in shown
    ]
    hint = "the tab Raw shows the stored record"
    if None in values:
        try:
            values = [decode(place.workspace.raw(place.ref, message.place))]
        except Undecodable as error:
            raise NotFound("the stored record is not JSON", hint=hint) from error
    found = next((one for at, one in enumerate(images_in(values)) if at == number), None)
    if found is None:
        raise NotFound("this image is not stored in the session", hint=hint)
    try:
        return found.type, base64.b64decode(found.encoded, validate=True)
    except (binascii.Error, ValueError):
        raise NotFound("the stored image is damaged", hint=hint) from None

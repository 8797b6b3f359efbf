"""Bodies and numbers of requests, and answers in JSON."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

LARGEST_BODY = 2_000_000
"""Most bytes of the body of a request."""


async def body_of(request: Request) -> bytes:
    """The body of a request. Raises HTTPException if it is too long."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST_BODY:
            raise HTTPException(413)
    return body


async def object_of(request: Request) -> dict[str, Any]:
    """The body of a request, which is a JSON object.

    Raises:
        HTTPException: it is too long.
        msgspec.DecodeError: not a JSON object.
    """
    return msgspec.json.decode(await body_of(request), type=dict[str, Any])


def number_of(request: Request, name: str, default: int) -> int:
    """A number of the query; `default` if it is missing or not valid."""
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default


def as_json(document: Any, status: int = 200) -> Response:
    """A value as JSON."""
    return Response(msgspec.json.encode(document), status, media_type="application/json")

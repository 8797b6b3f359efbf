"""Access checks by the rules of `loopback`, and the headers of every answer."""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sessionary import loopback

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types sessionary"
)
"""Only what this server ships is loaded and run, and HTML enters the page in one place of its script."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
API = "/api/"
_READS = ("GET", "HEAD")


class Guard:
    """Refuses requests, and adds the headers.

    Args:
        port: the port that is listened on; None for a Unix socket, which may be forwarded to any port.
    """

    def __init__(self, app: ASGIApp, token: str, port: int | None) -> None:
        self._app = app
        self._token = token
        self._port = port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refused = self._refusal(scope)
        await (self._app if refused is None else refused)(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers, path, method = Headers(scope=scope), scope["path"], scope["method"]
        if not loopback.is_own_host(headers.get("host"), self._port):
            return _refused(403, "the request is for another host", "open the link of `sessionary serve`")
        if not _is_from_here(headers, is_page=path == "/" and method in _READS):
            return _refused(403, "the request comes from another site", "open the link of `sessionary serve`")
        if not path.startswith(API):
            return None
        if not loopback.has_token(headers.get("authorization"), self._token):
            hint = "open the link that `sessionary serve` opened or printed at its last start"
            return _refused(401, "the token is missing or that of an earlier start", hint)
        if method not in _READS and headers.get("content-type") != "application/json":
            return _refused(415, "the body must be application/json", "set Content-Type")
        return None


def _is_from_here(headers: Headers, *, is_page: bool) -> bool:
    """False for what another site caused. The page itself may be navigated to from anywhere: it has no data."""
    if not loopback.is_own_origin(headers.get("origin"), headers["host"]):
        return False
    return loopback.is_own_site(headers.get("sec-fetch-site")) or (
        is_page
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )


def _refused(status: int, message: str, hint: str) -> JSONResponse:
    return JSONResponse({"error": "Refused", "message": message, "hint": hint}, status)

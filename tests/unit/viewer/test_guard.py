"""Who may ask, and what every answer says to the browser."""

import re
from pathlib import Path

import anyio
import pytest
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import Message

from sessionary.viewer.app import viewer_app
from sessionary.viewer.library import Library
from sessionary.workspace import Workspace

TOKEN = "t0ken-of-this-start"
HOST = "127.0.0.1:8642"
BEARER = {"authorization": f"Bearer {TOKEN}"}
NUMBERS = {"at:int": "0", "number:int": "0", "key": "0", "other": "0", "number": "0", "name": "repair"}


def served() -> list[tuple[str, str]]:
    """The method and an address of every route below /api/."""
    app = viewer_app(Library([]), TOKEN, 8642)
    found = []
    for route in app.routes:
        assert isinstance(route, Route)
        path = re.sub(r"\{([\w:]+)\}", lambda part: NUMBERS[part[1]], route.path)
        found += [(method, path) for method in sorted(route.methods or ()) if path.startswith("/api/")]
    return found


ROUTES = served()


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    library = Library([Workspace(tmp_path, cache=str(tmp_path / "cache"))])
    return TestClient(viewer_app(library, TOKEN, 8642), base_url=f"http://{HOST}")


@pytest.mark.parametrize(("method", "route"), ROUTES)
@pytest.mark.parametrize("given", [None, "Bearer ", "Bearer wrong", f"Basic {TOKEN}", TOKEN])
def test_every_route_needs_the_token(client: TestClient, method: str, route: str, given: str | None) -> None:
    headers = {} if given is None else {"authorization": given}
    answer = client.request(method, route, headers={**headers, "content-type": "application/json"})
    assert answer.status_code == 401
    assert method == "HEAD" or answer.json()["hint"].startswith("open the link")


def test_the_routes_are_those_that_are_served() -> None:
    assert {path for _, path in ROUTES} >= {
        "/api/undo/0",
        "/api/session/0/actions/repair",
        "/api/render",
        "/api/read",
    }
    assert len(ROUTES) > 30


SPELLINGS = ("//api/sessions", "/api//sessions", "/API/sessions", "/static/../api/sessions", "/api/sessions/")


@pytest.mark.parametrize("path", SPELLINGS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "OPTIONS", "TRACE"])
def test_no_other_spelling_leads_to_data(tmp_path: Path, method: str, path: str) -> None:
    """Without the client, which would tidy the path."""
    app = viewer_app(Library([Workspace(tmp_path, cache=str(tmp_path / "cache"))]), TOKEN, 8642)
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(b"host", HOST.encode())],
    }
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        sent.append(message)

    anyio.run(app, scope | {"app": app, "root_path": ""}, receive, send)
    assert sent[0]["status"] in (401, 404, 405)
    assert b"total" not in b"".join(one.get("body", b"") for one in sent)


@pytest.mark.parametrize(("method", "path"), [one for one in ROUTES if one[0] == "POST"])
def test_a_read_only_server_refuses_whatever_could_change_something(
    tmp_path: Path, method: str, path: str
) -> None:
    """The list is that of the routes: a new one that is not among the two that only read must be refused as well."""
    library = Library([Workspace(tmp_path, cache=str(tmp_path / "cache"))])
    client = TestClient(viewer_app(library, TOKEN, 8642, read_only=True), base_url=f"http://{HOST}")
    answer = client.request(method, path, headers=BEARER, json=[] if path == "/api/render" else {})
    assert answer.status_code == (200 if path in ("/api/refresh", "/api/render") else 409)


def test_a_token_elsewhere_than_in_the_header_counts_for_nothing(client: TestClient) -> None:
    client.cookies.set("sessionary-token", TOKEN)
    assert client.get(f"/api/sessions?token={TOKEN}").status_code == 401


def test_the_token_opens(client: TestClient) -> None:
    assert client.get("/api/sessions", headers=BEARER).json()["total"] == 0


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8642", "127.0.0.1:8643", "127.0.0.1", "127.0.0.1.evil.example:8642", ""],
)
def test_a_name_that_another_site_owns_is_refused(client: TestClient, host: str) -> None:
    for route in ("/", "/static/main.js", "/api/sessions"):
        assert client.get(route, headers={**BEARER, "host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost:8642", "[::1]:8642", HOST])
def test_the_names_of_this_machine_pass(client: TestClient, host: str) -> None:
    assert client.get("/api/sessions", headers={**BEARER, "host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:8642", "http://127.0.0.1:9999"]
)
def test_another_origin_is_refused(client: TestClient, origin: str) -> None:
    assert client.get("/api/sessions", headers={**BEARER, "origin": origin}).status_code == 403


def test_the_own_origin_passes(client: TestClient) -> None:
    assert client.get("/api/sessions", headers={**BEARER, "origin": f"http://{HOST}"}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_another_site_caused_is_refused(client: TestClient, site: str) -> None:
    caused = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"}
    for route in ("/", "/static/main.js", "/api/sessions"):
        assert client.get(route, headers={**BEARER, **caused}).status_code == 403


def test_only_the_page_itself_may_be_navigated_to_and_not_into_a_frame(client: TestClient) -> None:
    caused = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/", headers={**caused, "sec-fetch-dest": "document"}).status_code == 200
    assert client.get("/", headers={**caused, "sec-fetch-dest": "iframe"}).status_code == 403
    api = client.get("/api/sessions", headers={**BEARER, **caused, "sec-fetch-dest": "document"})
    assert api.status_code == 403


def test_a_form_of_another_site_cannot_post(client: TestClient) -> None:
    form = client.post("/api/refresh", content="{}", headers={**BEARER, "content-type": "text/plain"})
    assert form.status_code == 415
    assert client.post("/api/refresh", json={}, headers=BEARER).status_code == 200


@pytest.mark.parametrize("route", ["/", "/static/main.js", "/static/none", "/api/sessions", "/api/none"])
def test_every_answer_has_the_headers_and_no_cookie(client: TestClient, route: str) -> None:
    found = client.get(route, headers=BEARER).headers
    policy = dict(part.strip().split(" ", 1) for part in found["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert "unsafe" not in found["content-security-policy"]
    assert found["referrer-policy"] == "no-referrer"
    assert found["x-content-type-options"] == "nosniff"
    assert found["cross-origin-resource-policy"] == "same-origin"
    assert found["cache-control"] == "no-store"
    assert "set-cookie" not in found
    assert "access-control-allow-origin" not in found


def test_a_refusal_has_the_headers_too(client: TestClient) -> None:
    found = client.get("/", headers={"host": "evil.example"})
    assert "default-src 'none'" in found.headers["content-security-policy"]


def test_a_forwarded_unix_socket_is_asked_under_any_port(tmp_path: Path) -> None:
    library = Library([Workspace(tmp_path, cache=str(tmp_path / "cache"))])
    client = TestClient(viewer_app(library, TOKEN, None), base_url="http://localhost:9000")
    assert client.get("/api/sessions", headers=BEARER).status_code == 200
    assert client.get("/api/sessions", headers={**BEARER, "host": "evil.example"}).status_code == 403


@pytest.mark.parametrize("name", ["..%2fapp.py", "%2e%2e/guard.py", "none.js", "__init__.py"])
def test_only_the_files_of_the_page_are_served(client: TestClient, name: str) -> None:
    assert client.get(f"/static/{name}").status_code == 404


def test_the_page_loads_nothing_from_elsewhere_and_has_no_inline_script(client: TestClient) -> None:
    page = client.get("/").text
    assert "http" not in page.replace("http-equiv", "")
    assert "<script>" not in page
    assert " on" not in page.replace(" on ", "")
    for name in (
        "main.js",
        "list.js",
        "session.js",
        "item.js",
        "dom.js",
        "api.js",
        "virtual.js",
        "style.css",
    ):
        text = client.get(f"/static/{name}").text
        assert "https://" not in text, name
        assert text.count(".innerHTML") == (name == "dom.js"), name

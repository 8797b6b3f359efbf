"""Who may ask a server on this machine."""

import pytest

from sessionary.loopback import has_token, is_own_host, is_own_origin, is_own_site, new_token

TOKEN = "t0ken"


@pytest.mark.parametrize("given", ["Bearer t0ken", "bearer t0ken"])
def test_the_token_opens(given: str) -> None:
    assert has_token(given, TOKEN)


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        "t0ken",
        "Bearer",
        "Bearer ",
        "Bearer  t0ken",
        "Bearer t0ken ",
        "Basic t0ken",
        "Bearer T0KEN",
        "Bearer \udcff",
        "Bearer é",
    ],
)
def test_nothing_else_does(given: str | None) -> None:
    assert not has_token(given, TOKEN)


def test_tokens_are_long_and_new() -> None:
    made = {new_token() for _ in range(100)}
    assert len(made) == 100
    assert min(map(len, made)) >= 43


@pytest.mark.parametrize("host", ["127.0.0.1:80", "localhost:80", "[::1]:80"])
def test_names_of_this_machine(host: str) -> None:
    assert is_own_host(host, 80)
    assert is_own_host(host, None)
    assert not is_own_host(host, 81)


@pytest.mark.parametrize(
    "host", [None, "", "evil.example", "127.0.0.1.evil.example", "localhost:80\n", "127.0.0.2:80"]
)
def test_names_of_others(host: str | None) -> None:
    assert not is_own_host(host, 80)
    assert not is_own_host(host, None)


def test_origins() -> None:
    assert is_own_origin(None, "localhost:80")
    assert is_own_origin("http://localhost:80", "localhost:80")
    for other in ("null", "", "https://localhost:80", "http://localhost:81", "http://evil.example"):
        assert not is_own_origin(other, "localhost:80")


def test_sites() -> None:
    assert all(map(is_own_site, (None, "same-origin", "none")))
    assert not any(map(is_own_site, ("cross-site", "same-site", "")))

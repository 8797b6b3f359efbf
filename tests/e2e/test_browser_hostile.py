"""Hostile text in every place that the page shows, in a real browser: nothing acts, nothing is loaded."""

import socket
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_browser import expect, opened, press, turn, write
from tests.e2e.test_serve import line, serving
from tests.hostile import hostile_home

pytestmark = pytest.mark.lane("chromium")


def checked(page: Any, link: str, asked: list[str]) -> None:
    """Nothing acted, no hidden character is shown, and only this server was asked."""
    assert page.evaluate("window.owned") is None
    assert page.evaluate("document.baseURI").startswith(link.partition("#")[0])
    expect(
        page.locator("iframe, body img, body script, body style, base, a[href^='javascript']")
    ).to_have_count(0)
    shown = page.evaluate("document.documentElement.outerHTML")
    hidden = [at for at, sign in enumerate(shown) if sign in "\u202e\x1b\x07"]
    assert [shown[max(at - 60, 0) : at + 1] for at in hidden[:3]] == []
    assert {url.split("/")[2] for url in asked if not url.startswith("data:")} == {link.split("/")[2]}


def test_hostile_text_does_nothing_anywhere(tmp_path: Path, page: Any) -> None:
    hostile_home(tmp_path / "home")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with serving(tmp_path, "--no-open") as process:
        link = line(process)
        opened(page, link)
        page.wait_for_selector("a.session:has-text('TALK')")
        checked(page, link, asked)

        page.locator("a.session", has_text="TALK").click()
        page.wait_for_selector("article.agent .text:not(.plain)")
        for summary in page.locator("article summary").all():
            summary.click()
        page.locator(".transcript").focus()
        page.keyboard.press("d")
        page.wait_for_selector("#drawer:not([hidden])")
        checked(page, link, asked)

        page.fill("#search", "bidi")
        page.wait_for_selector("a.hit mark")
        checked(page, link, asked)
        page.press("#search", "Escape")

        page.evaluate("location.hash = '#/overview'")
        page.wait_for_selector("figure:has-text('EMS of')")
        checked(page, link, asked)

        for title, seen in (
            ("TALK", "figure"),
            ("BOARD", ".board .task"),
            ("LABOUR", "figure"),
            ("STORM", "figure"),
        ):
            page.locator("a.session", has_text=title).click()
            press(page, "Charts")
            page.wait_for_selector(f".overview {seen}")
            checked(page, link, asked)

        page.locator("a.session", has_text="TALK").click()
        press(page, "Compare")
        page.locator(".choices a", has_text="Well").click()
        page.wait_for_selector(".pair")
        checked(page, link, asked)


def test_the_policy_stops_what_would_get_into_the_page(tmp_path: Path, browser: Any) -> None:
    """Not the fixture `page`: the browser reports each refusal as an error."""
    write(tmp_path / "home", "well", "Well", turn(1))
    context = browser.new_context()
    page = context.new_page()
    with serving(tmp_path, "--no-open") as process, socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(0.3)
        opened(page, line(process))
        page.evaluate(
            """(other) => {
              const script = document.createElement('script');
              try { script.text = 'window.owned = 1'; document.body.append(script); } catch {}
              try { document.body.innerHTML += '<img src=x onerror="window.owned = 2">'; } catch {}
              const image = document.createElement('img');
              image.src = `${other}/x`;
              document.body.append(image);
              const handler = document.createElement('b');
              try { handler.setAttribute('onclick', 'window.owned = 3'); } catch {}
              document.body.append(handler);
              handler.click();
              fetch(`${other}/y`).catch(() => {});
            }""",
            f"http://127.0.0.1:{other.getsockname()[1]}",
        )
        with pytest.raises(TimeoutError):
            other.accept()
        assert page.evaluate("window.owned") is None
    context.close()

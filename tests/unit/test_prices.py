"""What usage costs: the shipped prices, those of the user, bands, days and hours."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec import json

from scripts import gen_prices
from sessionary.errors import Invalid
from sessionary.model import CONTEXTS, QUARTER, Usage
from sessionary.workspace.prices import PriceFile, Prices, load_prices

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "costs.md"
MILLION = 1_000_000


def quarter(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) // QUARTER


def prices_of(*models: dict[str, object]) -> Prices:
    return Prices(json.decode(json.encode({"models": models, "date": "2026-01-01"}), type=PriceFile))


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "sessionary"
    folder.mkdir()
    return folder / "prices.json"


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("Claude-Sonnet-4-5[1m]", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("claude-opus-4-1", "claude-opus-4-1"),
        ("gpt-5-codex", "gpt-5"),
        ("gpt-5.2-20251211", "gpt-5.2"),
        ("gemini-2.5-pro", "gemini-2.5-pro"),
        ("qwen/qwen3-coder", "qwen/qwen3-coder"),
        ("gemini-2.5-pro-preview-tts", "gemini-2.5-pro-tts"),
    ],
)
def test_a_model_is_found_by_the_names_that_agents_write(name: str, model: str) -> None:
    found = load_prices().model(name)
    assert found is not None
    assert found.model == model


@pytest.mark.parametrize("name", ["opus", "qwen3-coder-plus", "(not named)", "", "gpt-5-made-up"])
def test_an_unknown_model_has_no_price(name: str) -> None:
    assert load_prices().rates(name) is None


def test_shipped_prices_of_each_kind_of_token() -> None:
    rates = load_prices().rates("claude-sonnet-4-5")
    assert rates is not None
    kinds = [
        (Usage(input=MILLION), 3.0),
        (Usage(output=MILLION, reasoning=MILLION), 15.0),
        (Usage(cache_read=MILLION), 0.3),
        (Usage(cache_write=MILLION), 3.75),
        (Usage(cache_write=MILLION, cache_write_1h=MILLION), 6.0),
        (Usage(cache_write_1h=MILLION), 0.0),
        (Usage(web_searches=100), 1.0),
    ]
    assert [rates.cost(usage) for usage, _ in kinds] == pytest.approx([cost for _, cost in kinds])


def test_a_large_request_has_other_prices_for_all_its_tokens() -> None:
    prices = load_prices()
    costs = [
        rates.cost(Usage(input=MILLION, output=MILLION)) if rates else None
        for context in (0, 128_000, 200_000, 272_000)
        for rates in (prices.rates("claude-sonnet-4-5", context=context),)
    ]
    assert costs == [18.0, 18.0, 28.5, 28.5]


def test_without_prices_for_caches_they_cost_as_other_input() -> None:
    rates = prices_of({"names": ["m"], "prices": [{"input": 2, "output": 3}]}).rates("m")
    assert rates is not None
    usage = Usage(cache_read=MILLION, cache_write=MILLION, cache_write_1h=MILLION, web_searches=5)
    assert rates.cost(usage) == 4.0


def test_the_last_price_that_applies_counts() -> None:
    prices = prices_of(
        {
            "names": ["m"],
            "prices": [
                {"input": 1, "output": 0},
                {"since": "2026-03-02", "input": 2, "output": 0},
                {"hours": [22.5, 1], "input": 3, "output": 0},
            ],
        }
    )
    times = [
        "2026-03-01T12:00",
        "2026-03-02T00:00",
        "2026-03-02T01:00",
        "2026-03-02T22:15",
        "2026-03-02T22:30",
    ]
    found = [prices.rates("m", quarter(time)) for time in times]
    assert [rates and rates.input for rates in found] == [1, 3, 2, 2, 3]


def test_the_prices_of_the_user_win_and_the_page_describes_them(config: Path) -> None:
    text = PAGE.read_text("utf-8")
    config.write_text(text[text.index("```json\n") + 8 : text.index("```\n", text.index("```json\n") + 8)])
    prices = load_prices()
    large = prices.rates("our-model-2", quarter("2026-09-01T00:00"), 200_000)
    assert (large and large.input, large and large.cache_read) == (4, None)
    later = prices.rates("vendor/our-model", quarter("2026-10-01T00:00"), 200_000)
    free = prices.rates("llama-on-our-desk")
    assert (later and later.input, free and free.cost(Usage(input=5))) == (1.5, 0)
    assert prices.rates("claude-opus-4-1") is not None
    config.write_text('{"models": [{"names": ["claude-opus-4*"], "prices": [{"input": 1, "output": 1}]}]}')
    own = load_prices().rates("claude-opus-4-1")
    assert own is not None
    assert own.input == 1


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{", "truncated"),
        ('{"models": [{"names": ["m"], "prices": []}]}', "$.models[0].prices"),
        (
            '{"models": [{"names": ["m"], "prices": [{"input": -1, "output": 1}]}]}',
            "$.models[0].prices[0].input",
        ),
        ('{"models": [{"names": ["m"], "prices": [{"input": 1, "output": 1, "cach": 1}]}]}', "cach"),
        (
            '{"models":[{"names":[],"prices":[{"input":1,"output":1,"above":{"5":{"input":1,"output":1}}}]}]}',
            "`above` has 5",
        ),
        ('"\ud800"'.encode("utf-8", "surrogatepass").decode("utf-8", "replace"), "prices.json"),
    ],
)
def test_a_file_that_is_not_valid_is_named_with_its_place(config: Path, text: str, place: str) -> None:
    config.write_text(text)
    with pytest.raises(Invalid) as caught:
        load_prices()
    assert str(config) in caught.value.message
    assert place in caught.value.message
    assert "move it away" in (caught.value.hint or "")


def test_the_shipped_file_says_where_it_comes_from() -> None:
    prices = load_prices()
    assert prices.date == str(datetime.fromisoformat(prices.date).date())
    package = Path(__file__).resolve().parents[2] / "src" / "sessionary" / "workspace" / "prices.json"
    file = json.decode(package.read_bytes(), type=PriceFile)
    assert file.source == f"the Python package genai-prices {file.version}"
    assert file.licence.startswith("The MIT License (MIT)\n\nCopyright (c) Pydantic Services Inc.")
    assert len(file.models) > 300
    bounds = {bound for model in file.models for price in model.prices for bound in price.above}
    assert bounds <= set(CONTEXTS) == set(gen_prices.CONTEXTS)

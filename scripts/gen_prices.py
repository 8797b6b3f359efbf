"""Write src/sessionary/workspace/prices.json from the data of genai-prices.

Sessionary itself never imports genai-prices. Install it elsewhere, and run this there:

    python -m venv /tmp/prices
    /tmp/prices/bin/pip install genai-prices
    /tmp/prices/bin/python scripts/gen_prices.py

It prints the models that are left out, and why. The file has the date of that day.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parent.parent / "src" / "sessionary" / "workspace" / "prices.json"
PROVIDERS = "anthropic openai google x-ai deepseek mistral moonshotai zai minimax meta openrouter".split()
"""In the order in which a name is looked up."""

VENDORS = frozenset(
    "openai anthropic google x-ai deepseek mistralai moonshotai z-ai minimax meta meta-llama".split()
)
"""Those that OpenRouter offers, and whose own prices are in the file. Of others it has only those of OpenRouter."""

RATES = {
    "input_mtok": "input",
    "output_mtok": "output",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write",
    "cache_write_1h_mtok": "cache_write_1h",
    "web_searches_kcount": "web_searches",
}
CONTEXTS = (32_000, 100_000, 128_000, 200_000, 256_000, 272_000, 512_000)
"""Those of sessionary.model."""


class LeftOut(Exception):
    """The file cannot express the prices of a model."""


def main() -> int:
    """Write the file; return the exit code."""
    providers = {one.id: one for one in import_module("genai_prices.data").providers}
    models, failures = [], []
    for provider in PROVIDERS:
        for model in providers[provider].models:
            vendor, slash, _ = model.id.rpartition("/")
            if provider == "openrouter" and (not slash or vendor.strip("~") in VENDORS):
                continue
            try:
                models.append({"provider": provider, "model": model.id, **_model(model)})
            except LeftOut as error:
                failures.append(f"{provider} {model.id}: {error}")
    installed = distribution("genai-prices")
    head = {
        "source": f"the Python package genai-prices {installed.version}",
        "version": installed.version,
        "licence": installed.read_text("licenses/LICENSE"),
        "date": datetime.now(UTC).date().isoformat(),
        "unit": "US dollars per million tokens; web_searches per thousand",
    }
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in models)
    TARGET.write_text(f'{json.dumps(head, indent=1)[:-2]},\n "models": [\n{lines}\n]}}\n', "utf-8")
    print(f"{len(models)} models; left out:", *failures, sep="\n  ", file=sys.stderr)
    return 0


def _model(model: Any) -> dict[str, Any]:
    names, but = list(_names(model.match)), sorted(set(_but(model.match)))
    conditional = model.prices if isinstance(model.prices, list) else [None]
    prices = [
        _price(model.prices) if one is None else {**_condition(one.constraint), **_price(one.prices)}
        for one in conditional
    ]
    return {"names": names, **({"except": but} if but else {}), "prices": prices}


def _condition(constraint: Any) -> dict[str, Any]:
    if constraint is None:
        return {}
    if hasattr(constraint, "start_date"):
        return {"since": constraint.start_date.isoformat()}
    times = [one.hour + one.minute / 60 for one in (constraint.start_time, constraint.end_time)]
    offsets = [one.utcoffset() for one in (constraint.start_time, constraint.end_time) if one.tzinfo]
    if any(offsets) or any(time * 4 % 1 for time in times):
        raise LeftOut(f"a time of day that is not a quarter of an hour in UTC: {constraint}")
    return {"hours": times}


def _price(stored: Any) -> dict[str, Any]:
    """The prices of a request, and those of larger requests, which a larger context replaces as a whole."""
    values = {ours: getattr(stored, theirs, None) for theirs, ours in RATES.items()}
    if values["input"] is None or values["output"] is None:
        raise LeftOut("no price for input and output")
    starts = {
        tier.start for value in values.values() if value is not None for tier in getattr(value, "tiers", ())
    }
    bands = {str(_context(start)): _rates(values, start) for start in sorted(starts)}
    return _rates(values, 0) | ({"above": bands} if bands else {})


def _rates(values: dict[str, Any], context: int) -> dict[str, float]:
    rates = {}
    for name, value in values.items():
        if value is None:
            continue
        price = getattr(value, "base", value)
        for tier in getattr(value, "tiers", ()):
            price = tier.price if tier.start <= context else price
        rates[name] = float(price)
    return {name: int(rate) if rate == int(rate) else rate for name, rate in rates.items()}


def _context(start: int) -> int:
    """The context of a band. One that begins with the 200,000th token counts as one behind it."""
    found = start + 1 if start + 1 in CONTEXTS else start
    if found not in CONTEXTS:
        raise LeftOut(f"prices change at {start:,} tokens")
    return found


def _names(match: Any) -> Iterator[str]:
    """The patterns of the names that a clause matches."""
    clauses = {"starts_with": "{}*", "ends_with": "*{}", "contains": "*{}*", "equals": "{}"}
    for kind, pattern in clauses.items():
        if hasattr(match, kind):
            yield pattern.format(getattr(match, kind).lower())
            return
    if hasattr(match, "or_"):
        for one in match.or_:
            yield from _names(one)
    elif hasattr(match, "and_"):
        first, second = match.and_
        if not hasattr(second, "regex") or second.regex != _NO_SPEECH:
            raise LeftOut(f"a combination: {match}")
        yield from _names(first)
    elif hasattr(match, "regex"):
        yield _of_regex(match.regex)
    else:
        raise LeftOut(f"an unknown clause: {match}")


_NO_SPEECH = "^(?!.*-[tT][tT][sS](?:$|-))"


def _but(match: Any) -> Iterator[str]:
    """The patterns of names that a combination excludes."""
    if hasattr(match, "and_"):
        yield from ("*-tts", "*-tts-*")
    for one in getattr(match, "or_", ()):
        yield from _but(one)


def _of_regex(regex: str) -> str:
    r"""A pattern for a regular expression of literals, ``\d``, ``\d{8}`` and classes."""
    if not regex.startswith("^"):
        raise LeftOut(f"a regular expression: {regex}")
    whole = regex.endswith("$")
    text = regex.removeprefix("^").removesuffix("$")
    text = re.sub(r"\\d\{(\d+)\}", lambda found: "[0-9]" * int(found[1]), text)
    text = text.replace(r"\d", "[0-9]").replace(r"\.", ".")
    if re.search(r"[\\(){}+?|^$*]", text):
        raise LeftOut(f"a regular expression: {regex}")
    return text if whole else f"{text}*"


if __name__ == "__main__":
    sys.exit(main())

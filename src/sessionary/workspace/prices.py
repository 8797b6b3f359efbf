"""The cost of usage at the list prices of the providers.

The prices come from `prices.json`, which a script makes from the data of genai-prices, and from a file of the user.
The cost of a model without a price is unknown, not zero.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib.resources import files
from typing import Annotated

from msgspec import Meta, MsgspecError, Struct, field, json

from sessionary.disk.fs import OS_FS, read_bytes
from sessionary.errors import Invalid
from sessionary.model import CONTEXTS, QUARTER, Usage
from sessionary.xdg import config_folder, file_in

FILE = "prices.json"
_MILLION = 1_000_000
_DAY = 24 * 3600 // QUARTER
"""Quarters of an hour."""

Rate = Annotated[float, Meta(ge=0)]
Hour = Annotated[float, Meta(ge=0, le=24)]


class Rates(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Prices in US dollars: of a million tokens, and of a thousand searches.

    Without its own price, what a cache read or wrote costs as much as other input, and what is kept for an hour as much
    as what is kept for minutes. Searches are free then.
    """

    input: Rate
    output: Rate
    cache_read: Rate | None = None
    cache_write: Rate | None = None
    cache_write_1h: Rate | None = None
    web_searches: Rate = 0

    def cost(self, usage: Usage) -> float:
        """The cost of usage."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        write_1h = write if self.cache_write_1h is None else self.cache_write_1h
        kept = min(usage.cache_write_1h, usage.cache_write)
        tokens = usage.input * self.input + usage.output * self.output + usage.cache_read * read
        written = (usage.cache_write - kept) * write + kept * write_1h
        return (tokens + written) / _MILLION + usage.web_searches * self.web_searches / 1000


class Price(Rates, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The prices of a model from a day on, or at some hours of the day.

    Attributes:
        since: the first day (UTC); None for any.
        hours: from which hour (UTC) up to which; None for any.
        above: the prices of all tokens of a request with more input tokens than the key, which is one of `CONTEXTS`.
    """

    since: date | None = None
    hours: tuple[Hour, Hour] | None = None
    above: dict[int, Rates] = field(default_factory=dict)

    def applies(self, quarter: int) -> bool:
        """True if it applies to requests in a quarter of an hour (`TimedUsage.quarter`)."""
        if (
            self.since is not None
            and quarter * QUARTER < datetime.combine(self.since, time.min, UTC).timestamp()
        ):
            return False
        if self.hours is None:
            return True
        start, end = self.hours
        hour = quarter % _DAY * QUARTER / 3600
        return start <= hour < end if start <= end else hour >= start or hour < end

    def rates(self, context: int) -> Rates:
        """The prices of requests with more input tokens than `context`."""
        bounds = [bound for bound in self.above if bound <= context]
        return self.above[max(bounds)] if bounds else self


class Model(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A model.

    Attributes:
        names: patterns of the names by which it is called, in lower case; ``*`` stands for any text. Those with a
            slash are compared with names as they are, others with names without a vendor in front.
        but: patterns of names that are those of other models.
        prices: the last one that applies counts, else the first.
        provider, model: for the reader.
    """

    names: list[str]
    prices: Annotated[list[Price], Meta(min_length=1)]
    but: list[str] = field(default_factory=list, name="except")
    provider: str = ""
    model: str = ""

    def is_called(self, name: str) -> bool:
        """True if a name in lower case is one of this model."""
        return any(_fits(name, one) for one in self.names) and not any(_fits(name, one) for one in self.but)


class PriceFile(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A file of prices, and where they come from."""

    models: list[Model]
    source: str = ""
    version: str = ""
    licence: str = ""
    date: str = ""
    unit: str = ""


class Prices:
    """The prices of models.

    Args:
        own: those of the user, which win; None if there are none.

    Attributes:
        date: the day of the prices of the package, as ``2026-11-29``.
    """

    def __init__(self, shipped: PriceFile, own: PriceFile | None = None) -> None:
        self.date: str = shipped.date
        self._models = [*(own.models if own is not None else ()), *shipped.models]
        self._today = int(datetime.now(UTC).timestamp()) // QUARTER
        self._found: dict[str, Model | None] = {}

    def model(self, name: str) -> Model | None:
        """The model of a name, in any case and with the name of a vendor in front; None for an unknown one."""
        if name not in self._found:
            named = (one for text in _spellings(name.lower()) for one in self._models if one.is_called(text))
            self._found[name] = next(named, None)
        return self._found[name]

    def rates(self, name: str, quarter: int = 0, context: int = 0) -> Rates | None:
        """The prices of requests to a model.

        Args:
            quarter: when, as `TimedUsage.quarter`; 0 for today.
            context: how large they were, as `TimedUsage.context`.

        Returns:
            None if the model is unknown.
        """
        model = self.model(name)
        if model is None:
            return None
        applying = (one for one in reversed(model.prices) if one.applies(quarter or self._today))
        return next(applying, model.prices[0]).rates(context)


def load_prices() -> Prices:
    """The prices of the package, and those of the user. Raises Invalid if the file of the user is not valid."""
    path = own_file()
    data = None if path is None else read_bytes(OS_FS, path)
    return Prices(_shipped(), None if data is None else _own(path or "", data))


def own_file() -> str | None:
    """The path of the user's prices; None without a folder for configuration."""
    return file_in(config_folder(), FILE)


@lru_cache(1)
def _shipped() -> PriceFile:
    return json.decode(files("sessionary.workspace").joinpath(FILE).read_bytes(), type=PriceFile)


def _own(path: str, data: bytes) -> PriceFile:
    hint = (
        "correct it as docs/howto/costs.md describes, or move it away to use the prices of Sessionary alone"
    )
    try:
        own = json.decode(data, type=PriceFile)
    except (MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f"{path} is not a valid price file: {error}", path=path, hint=hint) from error
    for number, model in enumerate(own.models):
        for price in model.prices:
            if wrong := sorted(price.above.keys() - set(CONTEXTS)):
                known = ", ".join(map(str, CONTEXTS))
                message = f"{path} is not a valid price file: `above` has {wrong[0]}, but prices can change at {known}"
                raise Invalid(f"{message} - at `$.models[{number}].prices`", path=path, hint=hint)
    return own


def _spellings(name: str) -> list[str]:
    """The names to look up, in order: with a vendor in front, without, and with a date in dashes."""
    bare = name.rpartition("/")[2]
    found = [name, bare.rpartition("anthropic.")[2], bare]
    head, dash, day = bare.rpartition("-")
    if dash and len(day) == 8 and day.isdigit():
        found.append(f"{head}-{day[:4]}-{day[4:6]}-{day[6:]}")
    return list(dict.fromkeys(found))


def _fits(name: str, pattern: str) -> bool:
    if ("/" in name) != ("/" in pattern):
        return False
    return name.startswith(pattern.split("*", maxsplit=1)[0].split("[", maxsplit=1)[0]) and fnmatchcase(
        name, pattern
    )

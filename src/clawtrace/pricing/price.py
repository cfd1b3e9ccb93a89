"""The price of a model call: `Pricing` and its answers; and glob patterns over model names."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from clawtrace.errors import ConfigError, ConfigProblem
from clawtrace.model.model_names import model_name
from clawtrace.pricing.genai import genai_rates, writes_no_cache
from clawtrace.pricing.rates import ModelCall, cost_of, provider_names
from clawtrace.support.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from clawtrace.pricing.entry import PriceEntry

__all__ = ["Locate", "Price", "Pricing", "can_both_match", "compile_glob", "literal_length"]

_TOKEN = re.compile(r"\*|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)


def compile_glob(pattern: str) -> re.Pattern[str]:
    """Return the regular expression that a whole name must match (`*`, `?`, `[…]`; lower case)."""
    return re.compile(fnmatch.translate(pattern.lower()))


def _tokens(pattern: str) -> list[str]:
    return _TOKEN.findall(pattern.lower())


def literal_length(pattern: str) -> int:
    """Return how many characters of `pattern` are literal."""
    return sum(len(token) == 1 and token not in "*?" for token in _tokens(pattern))


def _meet(left: str, right: str) -> bool:
    """Whether one character can match both one-character tokens."""
    if left == "?" or right == "?":
        return True
    if len(left) == 1 and len(right) == 1:
        return left == right
    if len(left) == 1:
        return compile_glob(right).match(left) is not None
    if len(right) == 1:
        return compile_glob(left).match(right) is not None
    both = (compile_glob(left), compile_glob(right))
    return any(all(glob.match(chr(code)) for glob in both) for code in range(0x20, 0x180))


def can_both_match(left: str, right: str) -> bool:
    """Return whether some name matches both patterns."""
    a, b = _tokens(left), _tokens(right)

    @cache
    def meet(i: int, j: int) -> bool:
        if i == len(a) and j == len(b):
            return True
        if i < len(a) and a[i] == "*":
            return meet(i + 1, j) or (j < len(b) and meet(i, j + 1))
        if j < len(b) and b[j] == "*":
            return meet(i, j + 1) or (i < len(a) and meet(i + 1, j))
        return i < len(a) and j < len(b) and _meet(a[i], b[j]) and meet(i + 1, j + 1)

    return meet(0, 0)


Locate = Callable[[tuple[str | int, ...]], tuple[str, int, int]]
"""Position of a key of the mapping: path below `model_pricing` → file, line, column (1-based; 0 when unknown)."""

PriceSource = Literal["model_pricing", "genai-prices"]

_GLOB = "glob:"


class Price(NamedTuple):
    """A price and where it comes from; both None when they are unknown."""

    usd: float | None
    source: PriceSource | None


_UNPRICED = Price(None, None)


def _fold(name: str) -> str:
    """Write a name as keys are compared: in lower case, a dot between two digits as a dash (providers write both)."""
    return re.sub(r"(?<=\d)\.(?=\d)", "-", name.strip().lower())


class _Names(NamedTuple):
    """The names under which one model's price may be stated, the most particular first."""

    with_provider: tuple[str, ...]
    plain: tuple[str, ...]

    @classmethod
    def of(cls, provider: str | None, model: str) -> _Names:
        prefix, _, rest = model.strip().lower().rpartition("/")
        name = model_name(model)
        plain = tuple(dict.fromkeys(map(_fold, (rest, name.dated, name.bare))))
        providers = provider_names(provider) if provider else ()
        if prefix:
            providers += (prefix, *provider_names(prefix))
        owned = tuple(dict.fromkeys(f"{owner}/{name}" for owner in providers for name in plain))
        return cls(owned, plain)


class Pricing(NamedTuple):
    """Prices of one project; without any, only the `genai-prices` tables answer.

    A key of `model_pricing` is a whole model name (``gpt-4o``), a provider and a name (``openai/gpt-4o``) or a glob
    (``glob:claude-*``). A name is compared with the bare name of the model and with its name as recorded, never with
    a part of it: a price for ``gpt-4o`` says nothing about ``gpt-4o-mini``. Exact with provider goes before exact
    goes before the glob with the longest literal part.
    """

    exact: Mapping[str, PriceEntry] = MappingProxyType({})
    globs: tuple[tuple[str, PriceEntry], ...] = ()
    """Patterns without the ``glob:`` prefix, the longest literal part first."""

    @classmethod
    def from_mapping(cls, mapping: Mapping[Any, Any] | None, locate: Locate | None = None) -> Pricing:
        """Read the `model_pricing` mapping of a configuration file.

        Args:
            mapping: The mapping as YAML gives it; None is the empty mapping.
            locate: Position of a key, for error messages.

        Raises:
            ConfigError: invalid keys or prices, all of them at once.
        """
        problems = _Problems(locate)
        exact: dict[str, PriceEntry] = {}
        globs: dict[str, PriceEntry] = {}
        if mapping is not None and not isinstance(mapping, Mapping):
            problems.add((), "must be a mapping from model names to prices")
            mapping = None
        for key, value in (mapping or {}).items():
            if not isinstance(key, str) or not key.strip():
                problems.add((str(key),), f"is not a model name: found {key!r}", "Put the name in quotes.")
                continue
            is_glob = key.startswith(_GLOB)
            name = _fold(key.removeprefix(_GLOB))
            if not is_glob and name.startswith(("re:", "literal:")):
                problems.add((key,), "is not a model name", "Use a whole name, `provider/name` or `glob:…`.")
                continue
            target = globs if is_glob else exact
            if name in target:
                problems.add((key,), f"states the price of {name!r} a second time", "Keep one of them.")
                continue
            entry = problems.entry(key, value)
            if entry is not None:
                target[name] = entry
        problems.compare(globs)
        problems.raise_any()
        return cls(exact, tuple(sorted(globs.items(), key=lambda item: -literal_length(item[0]))))

    def price_call(
        self,
        provider: str | None,
        model: str | None,
        input_tokens: int | None,
        output_tokens: int | None,
        cache_read: int | None = None,
        cache_write: int | None = None,
        reasoning: int | None = None,
        at_ns: int | None = None,
    ) -> Price:
        """Return what one call cost in US dollars and who says so; the arguments are those of `ModelCall`.

        A call whose input or output tokens are unknown has no price, unless its price does not depend on them
        (`per_request` only, or a price of 0). Cached and reasoning tokens that are unknown count as the plain input
        and output that they are part of. Counts that contradict each other (more cached tokens than input) have no
        price. An entry of the project that names the model is never passed over for the tables.
        """
        call = ModelCall(provider, model, input_tokens, output_tokens, cache_read, cache_write, reasoning, at_ns)
        counts = (input_tokens, output_tokens, cache_read, cache_write, reasoning)
        if not model or not model.strip() or any(count is not None and count < 0 for count in counts):
            return _UNPRICED
        entry = self._entry(_Names.of(provider, model))
        source: PriceSource = "genai-prices" if entry is None else "model_pricing"
        if entry is not None:
            rates = entry.rates(input_tokens)
        elif input_tokens is None or output_tokens is None:
            return _UNPRICED
        else:
            rates = genai_rates(provider, model, input_tokens, output_tokens, at_ns)
            if rates is not None and rates.reasoning is not None and reasoning is None:
                return _UNPRICED
        cost = None if rates is None else cost_of(rates, call)
        return _UNPRICED if cost is None else Price(float(cost), source)

    def bounds(self, call: ModelCall, plain: float) -> tuple[float, float]:
        """Return the least and the most that a call can have cost, whose price with unknown parts as plain tokens is `plain`.

        They differ where it is unknown how many tokens were read from or written to the cache, and these have other prices.
        """
        known = (call.cache_read or 0) + (call.cache_write or 0)
        rest = (call.input_tokens or 0) - known
        if rest <= 0:
            return plain, plain
        read, written = call._replace(cache_read=rest), call._replace(cache_write=rest)
        unknown = [other for known, other in ((call.cache_read, read), (call.cache_write, written)) if known is None]
        others = [self.price_call(*other).usd for other in unknown]
        prices = [plain, *(usd for usd in others if usd is not None)]
        return min(prices), max(prices)

    def writes_no_cache(self, provider: str | None, model: str) -> bool:
        """Return whether the price lists know how a model's cache is billed, and that writing to it is not counted."""
        entry = self._entry(_Names.of(provider, model))
        if entry is not None and entry.bills_cache_writes:
            return False
        return bool(model.strip()) and writes_no_cache(provider, model)

    def _entry(self, names: _Names) -> PriceEntry | None:
        for name in (*names.with_provider, *names.plain):
            if name in self.exact:
                return self.exact[name]
        for pattern, entry in self.globs:
            subjects = names.with_provider if "/" in pattern else names.plain
            glob = compile_glob(pattern)
            if any(glob.match(subject) for subject in subjects):
                return entry
        return None


class _Problems:
    """The problems of one mapping, gathered so that all of them are reported at once."""

    def __init__(self, locate: Locate | None) -> None:
        self._locate = locate
        self._found: list[ConfigProblem] = []

    def add(self, path: tuple[str | int, ...], message: str, hint: str = "") -> None:
        file, line, column = self._locate(path) if self._locate else ("model_pricing", 0, 0)
        key = ".".join(str(part) for part in ("model_pricing", *path))
        self._found.append(ConfigProblem(file, line, column, message, key, hint))

    def entry(self, key: str, value: Any) -> PriceEntry | None:
        from pydantic import ValidationError

        from clawtrace.pricing.entry import PriceEntry, PriceTier

        try:
            return PriceEntry.model_validate(value)
        except ValidationError as error:
            for item in error.errors(include_url=False):
                said = item["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
                if item["type"] in ("decimal_parsing", "decimal_type"):
                    said = f"must be a number, found {item['input']!r}"
                hint = ""
                if item["type"] == "extra_forbidden":
                    keys = list(PriceEntry.model_fields if len(item["loc"]) == 1 else PriceTier.model_fields)
                    said = f"is not a known key; known are {', '.join(f'`{one}`' for one in keys)}"
                    hint = did_you_mean(item["loc"][-1], keys)
                self.add((key, *item["loc"]), said, hint)
        return None

    def compare(self, globs: Mapping[str, PriceEntry]) -> None:
        """Refuse two globs that are equally particular, can match the same model and state other prices."""
        items = list(globs.items())
        for at, (left, entry) in enumerate(items):
            for right, other in items[:at]:
                equal = literal_length(left) == literal_length(right) and ("/" in left) == ("/" in right)
                if equal and entry != other and can_both_match(left, right):
                    self.add(
                        (_GLOB + left,),
                        f"and `{_GLOB}{right}` can name the same model and are equally particular",
                        "Make one of them longer.",
                    )

    def raise_any(self) -> None:
        if self._found:
            raise ConfigError(self._found)

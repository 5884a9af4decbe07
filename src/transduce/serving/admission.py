"""Who asks, and whether what is asked is within bounds: nothing is begun before that."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import Request

from transduce.counts import counted
from transduce.serving.config import ServingConfig
from transduce.serving.keys import Keys
from transduce.serving.limits import Caller, Rates
from transduce.serving.logs import Log
from transduce.serving.metrics import Metrics
from transduce.serving.refusals import Refused


class Admission:
    """Lets requests in or refuses them."""

    def __init__(self, config: ServingConfig, log: Log, metrics: Metrics) -> None:
        self._config, self._metrics = config, metrics
        self._keys = Keys(config.keys, lambda message: log("keys", level="warning", message=message))
        self._rates = Rates()

    def admit(
        self, request: Request, api_key: str | None, texts: Sequence[str] = (), file: bytes = b""
    ) -> Caller:
        """Who asks. Raises `Refused` for a wrong key, for too much text, and for too many requests.

        A file counts as so many characters as it has bytes, but for the limit of a single request.
        """
        caller = self._caller(request, api_key)
        characters = sum(map(len, texts))
        told = request.state.told
        if caller.key is not None:
            told["key"] = caller.key
        told["texts"], told["characters"] = len(texts), characters
        self._check(texts, characters)
        if file:
            told["bytes"] = len(file)
        self._rates.take(caller, characters + len(file))
        self._metrics.characters.inc(characters)
        if self._config.log_text:
            told["text"] = list(texts)
        return caller

    def _caller(self, request: Request, api_key: str | None) -> Caller:
        config = self._config
        header = request.headers.get("authorization", "")
        secret = api_key or (header[7:].strip() if header[:7].lower() == "bearer " else "")
        address = request.client.host if request.client is not None else "unknown"
        if secret and config.keys is not None:
            key = self._keys.find(secret)
            if key is None:
                raise Refused(403, "Invalid API key")
            requests, characters = key.requests_per_minute, key.characters_per_minute
            return Caller(
                f"key {key.name}",
                config.requests_per_minute if requests is None else requests,
                config.characters_per_minute if characters is None else characters,
                key.name,
            )
        if config.require_key:
            raise Refused(403, "Please contact the server operator to get an API key")
        return Caller(f"address {address}", config.requests_per_minute, config.characters_per_minute)

    def _check(self, texts: Sequence[str], characters: int) -> None:
        config = self._config
        if len(texts) > config.max_texts:
            count = counted(len(texts), "text", "exceed")
            raise Refused(400, f"Invalid request: {count} the limit of {config.max_texts:,}")
        if characters > config.max_characters:
            raise Refused(
                413,
                f"Invalid request: request ({characters:,} characters) exceeds text limit "
                f"({config.max_characters:,})",
            )

"""Our own API: what LibreTranslate's cannot say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from transduce.counts import counted
from transduce.errors import TransduceError
from transduce.serving.admission import Admission
from transduce.serving.asked_of_v1 import (
    AttentionRequest,
    NextWordsRequest,
    StreamRequest,
    TranslationRequest,
    TreeRequest,
    told,
)
from transduce.serving.config import ServingConfig
from transduce.serving.files import safe_name
from transduce.serving.language_names import language_name
from transduce.serving.libretranslate import translate_upload
from transduce.serving.looking import attention_of, only_leg, tree_of, words_of
from transduce.serving.models import Leg, Served
from transduce.serving.parameters import read_parameters
from transduce.serving.refusals import Refused, status_of, too_late
from transduce.serving.service import Service, TranslatedText

_BEAT = 5.0
"""Seconds after which a stream that has nothing to say says so, so that no proxy closes it."""


class OwnApi:
    """The routes below ``/v1/``."""

    def __init__(self, service: Service, admission: Admission, config: ServingConfig) -> None:
        self._service, self._admission, self._config = service, admission, config

    def router(self) -> APIRouter:
        """All of them."""
        router = APIRouter(prefix="/v1", tags=["v1"])
        for answer in (self.translate, self.alternatives, self.attention, self.tree):
            router.post(f"/{answer.__name__}")(answer)
        router.post("/stream", response_class=StreamingResponse)(self.stream)
        router.post("/translate_file", openapi_extra=_FORM)(self.translate_file)
        for tell in (self.languages, self.models, self.limits):
            router.get(f"/{tell.__name__}")(tell)
        return router

    def _legs_of(self, asked: Any, texts: Sequence[str]) -> tuple[list[Leg], dict[str, Any]]:
        source, confidence = self._service.source(asked.source, texts)
        legs = self._service.models.legs(source, asked.target)
        between = [leg.pair.target for leg in legs[:-1]]
        models = [leg.model.name for leg in legs]
        return legs, {"source_language": source, "confidence": confidence, "via": between, "models": models}

    async def translate(self, request: Request, asked: TranslationRequest) -> Response:
        """Texts translated line by line, each line with its outputs, scores, and what was asked for."""
        self._admission.admit(request, asked.api_key, asked.texts)
        legs, way = self._legs_of(asked, asked.texts)
        _check_beside(asked)
        if asked.format == "html":
            outputs = await self._service.html(asked.texts, legs, asked.wanted())
            return JSONResponse({**way, "translations": [{"text": text} for text in outputs]})
        found = await self._service.translate(asked.texts, legs, asked.wanted())
        return JSONResponse({**way, "translations": [_told(one) for one in found]})

    async def stream(self, request: Request, asked: StreamRequest) -> Response:
        """Server-sent events: ``piece`` with text, at last ``end`` with the translation, or ``error``."""
        self._admission.admit(request, asked.api_key, [asked.text])
        legs, way = self._legs_of(asked, [asked.text])
        if legs:
            # What is wrong with them has a status of its own, not an event.
            self._service.options(legs[-1], asked.options())
        events = _events(self._service, asked, legs, way, self._config.timeout)
        return StreamingResponse(
            events, media_type="text/event-stream", headers={"cache-control": "no-store"}
        )

    async def alternatives(self, request: Request, asked: NextWordsRequest) -> Response:
        """The likeliest words at a place of an output, and how it goes on after each."""
        self._admission.admit(request, asked.api_key, [asked.text, asked.prefix])
        legs, way = self._legs_of(asked, [asked.text])
        leg = only_leg(legs)
        beam = asked.beam or self._config.beam
        alpha = self._config.alpha if asked.alpha is None else asked.alpha
        _check_beam(beam, self._config)
        options = {"beam": beam, "alpha": alpha}
        words = await self._service.look(
            leg.model, lambda: words_of(leg, asked.text, asked.prefix, asked.count, options)
        )
        return JSONResponse({**way, "words": words})

    async def attention(self, request: Request, asked: AttentionRequest) -> Response:
        """Where every head of every layer looks: Figures 3 to 5 of the paper for one sentence."""
        self._admission.admit(request, asked.api_key, [asked.text, asked.translation])
        legs, way = self._legs_of(asked, [asked.text])
        leg, most = only_leg(legs), self._config.max_inspected
        found = await self._service.look(
            leg.model, lambda: attention_of(leg, asked.text, asked.translation, most)
        )
        return JSONResponse({**way, **found})

    async def tree(self, request: Request, asked: TreeRequest) -> Response:
        """The tree of the beam search: what was kept, what was dropped, and why it ended."""
        self._admission.admit(request, asked.api_key, [asked.text])
        legs, way = self._legs_of(asked, [asked.text])
        leg, most = only_leg(legs), self._config.max_inspected
        _check_beam(asked.beam, self._config)
        found = await self._service.look(
            leg.model, lambda: tree_of(leg, asked.text, asked.beam, asked.alpha, asked.shown, most)
        )
        return JSONResponse({**way, **found})

    async def translate_file(self, request: Request) -> Response:
        """A document translated; the answer is the document."""
        asked, file = await read_parameters(request)
        self._admission.admit(request, asked.api_key, file=file.content if file else b"")
        asked.need("target")
        if file is None or not file.name:
            raise Refused(400, "Invalid request: missing file parameter")
        name, content = file.name, file.content
        new = await translate_upload(self._service, name, content, asked.source or "auto", asked.target or "")
        headers = {"content-disposition": f'attachment; filename="{safe_name(name)}"'}
        return Response(new, media_type="application/octet-stream", headers=headers)

    async def languages(self) -> Any:
        """The languages to translate from, and into which each goes, by way of which others."""
        return [
            {
                "code": code,
                "name": language_name(code),
                "targets": [
                    {
                        "code": target,
                        "name": language_name(target),
                        "via": [leg.pair.target for leg in self._service.models.legs(code, target)[:-1]],
                    }
                    for target in self._service.models.targets(code)
                ],
            }
            for code in self._service.models.sources()
        ]

    async def models(self) -> Any:
        """The models, and what keeps the newest state of a folder from being served, if anything does."""
        return [_model(served) for served in self._service.models.served]

    async def limits(self) -> Any:
        """How much may be asked for at once and a minute, by whoever has no key with other limits."""
        return self._config.limits()


_FORM: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "source": {"type": "string", "default": "auto"},
                        "target": {"type": "string"},
                        "api_key": {"type": "string"},
                    },
                    "required": ["file", "target"],
                }
            }
        },
    }
}


def _told(found: TranslatedText) -> dict[str, Any]:
    return {"text": found.text, "lines": [told(line) for line in found.lines]}


def _check_beside(asked: TranslationRequest) -> None:
    """Nothing; `Refused` where there are not as many prefixes or lists of terms as texts."""
    wanted = asked.wanted()
    for name, items in (("prefix", wanted.prefixes), ("terms", wanted.terms)):
        if items is not None and len(items) != len(asked.texts):
            raise Refused(
                422, f"{name}: {len(items)} for {counted(len(asked.texts), 'text')}; give one for each"
            )
        if items is not None and asked.format == "html":
            raise Refused(422, f"{name}: goes with format text only")


def _check_beam(beam: int, config: ServingConfig) -> None:
    if beam > config.max_beam:
        raise Refused(400, f"beam is {beam}, but the limit is {config.max_beam}")


def _model(served: Served) -> dict[str, Any]:
    model = served.current
    searcher, config = model.translator.searcher, model.translator.bundle.model.config
    return {
        "name": model.name,
        "pairs": [{"source": pair.source, "target": pair.target} for pair in model.pairs],
        "parameters": model.translator.bundle.model.parameter_count(),
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "heads": config.heads,
        "d_model": config.d_model,
        "vocabulary": config.vocabulary,
        "max_length": searcher.max_length,
        "engine": searcher.engine_name,
        "device": model.translator.device,
        "precision": model.translator.precision,
        "domains": model.translator.domains,
        "loaded_at": model.at,
        "reloads": served.reloads,
        "problem": served.problem,
    }


async def _events(
    service: Service, asked: StreamRequest, legs: list[Leg], way: dict[str, Any], seconds: float
) -> AsyncIterator[bytes]:
    """The events of a stream; nothing is translated any more once nobody reads them."""
    pieces: asyncio.Queue[str | None] = asyncio.Queue()
    task = asyncio.ensure_future(service.stream(asked.text, legs, asked.wanted(), pieces.put_nowait))
    task.add_done_callback(lambda _: pieces.put_nowait(None))
    loop = asyncio.get_running_loop()
    end = loop.time() + 0.98 * seconds
    try:
        while True:
            try:
                piece = await asyncio.wait_for(pieces.get(), min(_BEAT, max(0.0, end - loop.time())))
            except TimeoutError:
                if loop.time() >= end:
                    yield _error(too_late(seconds))
                    return
                yield b": still at work\n\n"
                continue
            if piece is None:
                break
            yield _event("piece", {"text": piece})
        found = task.result()
        yield _event("end", {**way, **_told(found)})
    except TransduceError as error:
        yield _error(error)
    finally:
        task.cancel()


def _error(error: TransduceError) -> bytes:
    return _event("error", {"error": " ".join(str(error).split()), "status": status_of(error)})


def _event(name: str, data: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()

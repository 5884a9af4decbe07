"""The API of LibreTranslate, as its clients and plug-ins speak it."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from transduce.documents.translate import SUFFIXES, format_of
from transduce.serving.admission import Admission
from transduce.serving.config import ServingConfig
from transduce.serving.detection import detect as detected
from transduce.serving.files import Files
from transduce.serving.language_names import language_name
from transduce.serving.parameters import Parameters, read_parameters
from transduce.serving.refusals import Refused
from transduce.serving.service import Service, Wanted

FORMATS = ("text", "html")
TEXT_FILE = ".txt"


class LibreTranslate:
    """The routes of LibreTranslate."""

    def __init__(self, service: Service, admission: Admission, config: ServingConfig) -> None:
        self._service, self._admission, self._config = service, admission, config
        self._files = Files(config.keep_files, 16 * config.max_file)
        self._suggestions = threading.Lock()

    def router(self) -> APIRouter:
        """All of them."""
        router = APIRouter(tags=["LibreTranslate"])
        translated = _body("q", "source", "target", "format", "alternatives")
        router.post("/translate", openapi_extra=translated)(self.translate)
        router.post("/detect", openapi_extra=_body("q"))(self.detect)
        router.post("/suggest", openapi_extra=_body("q", "s", "source", "target"))(self.suggest)
        router.post("/translate_file", openapi_extra=_form("source", "target"))(self.translate_file)
        router.get("/download_file/{key}", name="download_file")(self.download_file)
        router.get("/languages")(self.languages)
        router.get("/frontend/settings")(self.settings)
        return router

    async def translate(self, request: Request) -> Response:
        """The translation of a text, or of each text of a list."""
        asked, _ = await read_parameters(request)
        self._admission.admit(request, asked.api_key, asked.texts if asked.q else ())
        asked.need("q", "source", "target")
        return JSONResponse(await _translated(self._service, self._config, asked))

    async def detect(self, request: Request) -> Response:
        """The served languages that a text may be in, the most probable first."""
        asked, _ = await read_parameters(request)
        self._admission.admit(request, asked.api_key, asked.texts)
        asked.need("q")
        found = detected("\n".join(asked.texts), self._service.models.languages)
        best = [one for at, one in enumerate(found) if at == 0 or one[1] >= 0.05]
        return JSONResponse([{"confidence": round(100 * p, 1), "language": code} for code, p in best])

    async def languages(self) -> Any:
        """The languages, each with those that it can be translated into."""
        return [
            {"code": code, "name": language_name(code), "targets": self._service.models.targets(code)}
            for code in self._service.models.languages
        ]

    async def translate_file(self, request: Request) -> Response:
        """A document translated; the answer says where it can be fetched."""
        asked, file = await read_parameters(request)
        self._admission.admit(request, asked.api_key, file=file.content if file else b"")
        if file is None or not file.name:
            raise Refused(400, "Invalid request: missing file parameter")
        asked.need("source", "target")
        name, content = file.name, file.content
        new = await translate_upload(self._service, name, content, asked.source or "", asked.target or "")
        url = request.url_for("download_file", key=self._files.keep(name, new))
        return JSONResponse({"translatedFileUrl": str(url)})

    async def download_file(self, key: str) -> Response:
        """A translated file."""
        kept = self._files.get(key)
        if kept is None:
            raise Refused(404, "there is no such file, or not any more: translate it again")
        headers = {"content-disposition": f'attachment; filename="{kept.name}"'}
        return Response(kept.content, media_type="application/octet-stream", headers=headers)

    async def settings(self) -> Any:
        """What a page needs to know."""
        codes = self._service.models.sources()
        target = self._service.models.targets(codes[0])[0]
        return {
            "apiKeys": self._config.keys is not None,
            "keyRequired": self._config.require_key,
            "charLimit": self._config.max_characters,
            "frontendTimeout": 500,
            "suggestions": self._config.suggestions is not None,
            "filesTranslation": True,
            "supportedFilesFormat": [TEXT_FILE, *SUFFIXES],
            "language": {
                "source": {"code": codes[0], "name": language_name(codes[0])},
                "target": {"code": target, "name": language_name(target)},
            },
        }

    async def suggest(self, request: Request) -> Response:
        """A better translation, kept for whoever looks after the server."""
        asked, _ = await read_parameters(request)
        if self._config.suggestions is None:
            raise Refused(403, "Suggestions are disabled on this server.")
        self._admission.admit(request, asked.api_key, [*asked.texts, asked.s or ""])
        asked.need("q", "s", "source", "target")
        line = {name: getattr(asked, name) for name in ("q", "s", "source", "target")}
        with self._suggestions:
            _append(self._config.suggestions, line)
        return JSONResponse({"success": True})


async def _translated(service: Service, config: ServingConfig, asked: Parameters) -> dict[str, Any]:
    format = asked.format or "text"
    if format not in FORMATS:
        raise Refused(400, f"{format[:40]} format is not supported")
    others = _alternatives(asked, config)
    source, confidence = service.source(asked.source or "", asked.texts)
    legs = service.models.legs(source, asked.target or "")
    result: dict[str, Any] = {}
    if format == "html":
        outputs = await service.html(asked.texts, legs, Wanted())
        alternatives: list[list[str]] = [[] for _ in outputs]
    else:
        options = {"n_best": min(1 + others, config.max_beam)} if others else {}
        found = await service.translate(asked.texts, legs, Wanted(options=options))
        outputs, alternatives = [one.text for one in found], [one.others(others) for one in found]
    many = isinstance(asked.q, list)
    result["translatedText"] = outputs if many else outputs[0]
    if asked.source == "auto":
        detected = {"confidence": confidence, "language": source}
        result["detectedLanguage"] = [detected] * len(outputs) if many else detected
    if others:
        result["alternatives"] = alternatives if many else alternatives[0]
    return result


def _alternatives(asked: Parameters, config: ServingConfig) -> int:
    """How many other outputs are wanted."""
    wanted = asked.alternatives or "0"
    try:
        count = max(0, int(wanted))
    except ValueError:
        raise Refused(400, "Invalid request: alternatives parameter is not a number") from None
    if count > config.max_alternatives:
        raise Refused(400, f"Invalid request: alternatives parameter must be <= {config.max_alternatives}")
    return count


async def translate_upload(service: Service, name: str, content: bytes, source: str, target: str) -> bytes:
    """A file that was sent, translated: a document by its name, or lines of text."""
    format = format_of(name)
    if not format and not name.lower().endswith(TEXT_FILE):
        known = ", ".join([TEXT_FILE, *SUFFIXES])
        raise Refused(415, f"Invalid request: file format not supported; this server translates {known}")
    if source == "auto":
        text = content[:4000].decode("utf-8", "ignore")
        source, _ = service.source(source, [text])
    legs = service.models.legs(source, target)
    if format:
        return (await service.document(content, format, legs, "the file")).content
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(400, f"the file: byte {error.start} is not UTF-8; convert it first") from None
    return (await service.translate([text], legs, Wanted()))[0].text.encode()


def _append(path: Path, line: dict[str, Any]) -> None:
    with path.open("ab") as file:
        file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")


def _properties(names: tuple[str, ...]) -> dict[str, Any]:
    text: dict[str, Any] = {"type": "string"}
    kinds = {
        "q": {"oneOf": [text, {"type": "array", "items": text}]},
        "format": {"type": "string", "enum": list(FORMATS), "default": "text"},
        "alternatives": {"type": "integer", "minimum": 0, "default": 0},
    }
    return {name: kinds.get(name, text) for name in (*names, "api_key")}


def _body(*names: str) -> dict[str, Any]:
    """How a request's parameters are told in the OpenAPI document: JSON or a form."""
    needed = [name for name in names if name not in ("format", "alternatives")]
    schema = {"type": "object", "properties": _properties(names), "required": needed}
    kinds = ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}


def _form(*names: str) -> dict[str, Any]:
    properties = {**_properties(names), "file": {"type": "string", "format": "binary"}}
    schema = {"type": "object", "properties": properties, "required": [*names, "file"]}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}

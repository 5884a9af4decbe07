"""The parameters of a request as LibreTranslate's clients send them: JSON, a form, or in the address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from starlette.datastructures import UploadFile

from transduce.serving.refusals import Refused

_MOST_FIELDS = 64


def _text(value: Any) -> Any:
    """Numbers and truths as JSON clients write them where a form would have text."""
    return str(value) if isinstance(value, int | float) else value


Text = Annotated[str, BeforeValidator(_text)]


class Parameters(BaseModel):
    """What the calls of LibreTranslate may say; what they do not know is left alone."""

    model_config = ConfigDict(extra="ignore")

    q: Text | list[Text] | None = None
    s: Text | None = None
    source: Text | None = None
    target: Text | None = None
    format: Text | None = None
    alternatives: Text | None = None
    api_key: Text | None = None

    def need(self, *names: str) -> None:
        """Nothing; `Refused`, naming it, where a parameter is missing or empty."""
        for name in names:
            if not getattr(self, name):
                raise Refused(400, f"Invalid request: missing {name} parameter")

    @property
    def texts(self) -> list[str]:
        """What ``q`` holds, as a list."""
        return self.q if isinstance(self.q, list) else [self.q or ""]


@dataclass(frozen=True)
class Sent:
    """A file that came with a request."""

    name: str
    content: bytes


async def read_parameters(request: Request) -> tuple[Parameters, Sent | None]:
    """The parameters of a request, and the file that came with them.

    Raises `Refused`: 400 for what cannot be read, 415 for a kind of body that is unknown.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if kind == "application/json" or kind.endswith("+json"):
        return _from_json(body), None
    values: dict[str, Any] = dict(_pairs(request.scope["query_string"]))
    file = None
    if kind == "multipart/form-data":
        fields, file = await _multipart(request, body)
        values |= fields
    elif kind in ("application/x-www-form-urlencoded", ""):
        values |= dict(_pairs(body))
    else:
        raise Refused(
            415, f"the body is {kind[:60]}; send application/json, a form, or multipart/form-data with a file"
        )
    for name in ("q", "s"):
        if name in values:  # forms end their lines with CR and LF
            values[name] = values[name].replace("\r\n", "\n")
    return _validated(lambda: Parameters.model_validate(values)), file


def _from_json(body: bytes) -> Parameters:
    return _validated(lambda: Parameters.model_validate_json(body))


def _validated(read: Any) -> Parameters:
    try:
        found: Parameters = read()
    except ValidationError as error:
        raise Refused(400, f"Invalid request: {explained(error)}") from None
    return found


def explained(error: ValidationError) -> str:
    """What is wrong, in one line, without what was sent."""
    return explained_all(error.errors(include_input=False, include_url=False, include_context=False))


def explained_all(errors: Sequence[Any]) -> str:
    """The same of the details of an error."""
    told = []
    for one in errors[:3]:
        where = ".".join(str(part) for part in one["loc"] if not isinstance(part, str) or part.isidentifier())
        told.append(f"{where}: {one['msg']}" if where else one["msg"])
    return "; ".join(told)


def _pairs(encoded: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            encoded.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
    except UnicodeDecodeError:
        raise Refused(400, "Invalid request: the form is not UTF-8") from None
    except ValueError:
        raise Refused(400, f"Invalid request: more than {_MOST_FIELDS} parameters") from None


async def _multipart(request: Request, body: bytes) -> tuple[dict[str, str], Sent | None]:
    fields: dict[str, str] = {}
    file = None
    async with request.form(max_files=1, max_fields=_MOST_FIELDS, max_part_size=len(body) + 1) as form:
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                file = Sent(value.filename or "", await value.read())
            elif value.encode("utf-8", "surrogatepass") not in body:
                raise Refused(400, f"Invalid request: the form's {name[:40]} is not UTF-8")
            else:
                fields[name] = value
    return fields, file

"""JSON bodies of requests and responses.

A request body has a size limit and is parsed strictly. It is validated in pydantic's JSON mode, in which strict types
still accept times written as text.
"""

from email.message import Message
from functools import cache
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request

from app.errors import ContentTooLarge, CorevaultError, InvalidRequest, UnsupportedMediaType
from app.http.errors.validation_errors import convert_body_errors, list_member_names
from app.http.middleware.slow_body_guard import TooSlow
from app.http.requests.strict_json import find_residual_faults, parse

BODY_BYTES: Final = 4 * 2**20
_REFUSED: Final = 0
"""Given to the framework in place of a body that was refused. No model accepts it, so the framework reports it."""


class Body(BaseModel):
    """Base of request bodies: strict types, finite numbers, no unknown members.

    The docstring below a member is its description in the OpenAPI document.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, frozen=True, use_attribute_docstrings=True
    )


class ResponseBody(BaseModel):
    """Base of response bodies; a member's docstring is its description in OpenAPI."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class JsonRequest(Request):
    """A request that reads its JSON body into ``model``.

    If the body is refused, the refusal is kept in ``state.unreadable_body``, because authentication is checked first.
    """

    def __init__(self, request: Request, model: type[BaseModel]) -> None:
        super().__init__(request.scope, request.receive)
        self._model = model
        self._raw: bytes | None = None

    async def body(self) -> bytes:
        """Return the raw bytes; reading stops once they exceed the limit."""
        if self._raw is None:
            self._raw = await self._read_bounded()
        return self._raw

    async def json(self) -> Any:
        if find_body_refusal(self) is None:
            try:
                return validate(self._model, await self.body())
            except CorevaultError as error:
                self.state.unreadable_body = error
        return _REFUSED

    async def _read_bounded(self) -> bytes:
        chunks = bytearray()
        try:
            async for chunk in self.stream():
                chunks += chunk
                if len(chunks) > BODY_BYTES:
                    self.state.unreadable_body = ContentTooLarge()
                    break
        except TooSlow as error:
            self.state.unreadable_body = error
            return b""
        if chunks and not is_json(self.headers.get("content-type", "")):
            self.state.unreadable_body = UnsupportedMediaType("Send the body as application/json.")
        return bytes(chunks)


def find_body_refusal(request: Request) -> CorevaultError | None:
    """Return why the body of this request was refused, if it was."""
    error = getattr(request.state, "unreadable_body", None)
    return error if isinstance(error, CorevaultError) else None


def is_json(content_type: str) -> bool:
    """Whether the media type is JSON in UTF-8 (the only encoding that JSON has)."""
    message = Message()
    message["content-type"] = content_type
    charset = message.get_content_charset("utf-8")
    return message.get_content_type() == "application/json" and charset in {"utf-8", "us-ascii"}


def validate(model: type[BaseModel], raw: bytes) -> BaseModel:
    """Parse and validate a JSON document.

    Raises:
        InvalidRequest: with one fault for each wrong member.
    """
    parsed = parse(raw)
    names = _member_names(model)
    residual = find_residual_faults(parsed, names)
    try:
        body = model.model_validate_json(raw)
    except ValidationError as error:
        errors = [dict(each) for each in error.errors(include_url=False, include_input=False)]
        unparsed = residual if errors[0]["type"] == "json_invalid" else ()
        raise InvalidRequest(faults=unparsed or convert_body_errors(errors, parsed.value, names)) from None
    if residual:
        raise InvalidRequest(faults=residual)
    return body


_member_names = cache(list_member_names)

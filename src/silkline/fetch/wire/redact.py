"""What must not be seen of an exchange: credentials, wherever a log of the wire would show them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from silkline.fetch.wire.exchange import Fields

HIDDEN = "***"

_SECRET_WORDS = "token|secret|password|passwd|api-?_?key|credential|signature|session-?_?id"
_SECRET_NAME = rf"[\w.-]*(?:{_SECRET_WORDS})[\w.-]*"
_is_secret_name = re.compile(rf"{_SECRET_NAME}|auth|pwd|sig|sid", re.I).fullmatch
_is_secret_field = re.compile(
    rf"(?:proxy-)?auth[\w-]*|cookie2?|x-[\w-]*auth[\w-]*|{_SECRET_NAME}",
    re.I,
).fullmatch
_cookie_pair = re.compile(r"([^=;]*=)[^;]*")
_scheme = re.compile(r"(?:basic|bearer|digest|negotiate|ntlm|aws4-hmac-sha256)(?= )", re.I)
_userinfo = re.compile(r"(?<=//)[^/?#@\s]*@")
_parameter = re.compile(r"(?<=[?&;#])([^=&;#\s]+)=([^&;#\s]*)")


def redacted_fields(fields: Iterable[tuple[str, str]]) -> Fields:
    """Header fields without credentials; names of cookies and kinds of authorization stay."""
    return tuple((name, _redacted_value(name, value)) for name, value in fields)


def redacted_url(text: str) -> str:
    """`text` without the userinfo of URLs and the values of parameters that are named like secrets."""
    text = _userinfo.sub(f"{HIDDEN}@", text)
    return _parameter.sub(_redacted_parameter, text)


def _redacted_value(name: str, value: str) -> str:
    kind = name.lower()
    if kind == "set-cookie":
        pair, mark, attributes = value.partition(";")
        return f"{pair.partition('=')[0]}={HIDDEN}{mark}{attributes}"
    if kind == "cookie":
        return _cookie_pair.sub(rf"\1{HIDDEN}", value) if "=" in value else HIDDEN
    if _is_secret_field(kind):
        scheme = _scheme.match(value)
        return f"{scheme[0]} {HIDDEN}" if scheme else HIDDEN
    return redacted_url(value)


def _redacted_parameter(match: re.Match[str]) -> str:
    return f"{match[1]}={HIDDEN}" if _is_secret_name(match[1]) else match[0]

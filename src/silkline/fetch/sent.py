"""What may go out: methods and header fields that stay in their line, and none that are the client's own."""

from __future__ import annotations

import re
from collections.abc import Mapping

from silkline.errors import BadUrlError
from silkline.header import fault_of

_is_token = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+").fullmatch
_is_name = re.compile(r"[^\x00-\x20\x7f:]+").fullmatch
_is_value = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*").fullmatch


def check_sendable(method: str, headers: Mapping[str, str]) -> None:
    """Raises BadUrlError for a method or field that would not stay in its line (RFC 9110, 5.1, 5.5, 9.1), and
    for a field that would frame the message anew, whoever has put it there."""
    if not _is_token(method):
        raise BadUrlError(f"the method {method[:40]!r} cannot be sent")
    for name, value in headers.items():
        if not (_is_name(name) and _is_value(value) and _is_encodable(name + value)):
            raise BadUrlError(f"the header {name[:40]!r} cannot be sent as it is")
    if fault := fault_of(headers):
        raise BadUrlError(fault)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

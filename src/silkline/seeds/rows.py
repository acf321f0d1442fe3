"""From the rows of a database to requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from silkline.errors import ConfigError, TaskError
from silkline.request import Request, request_from_fields

REQUEST_COLUMNS = ("url", "label", "priority", "method", "headers", "body", "key")
EXTRA = "extra"

_json = msgspec.json.Decoder()


class RowReader:
    """Makes requests of the rows of one query.

    The columns in REQUEST_COLUMNS, in any case, are the fields of a request with that name; NULL stands for
    a field that is not given. `headers` is a JSON object. All other columns go into the request's `extra`,
    those of a column "extra" with a JSON object one by one. What JSON has no word for becomes text: dates
    and times as ISO 8601, decimals with all their digits, UUIDs, bytes as base64.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        """Raises ConfigError where no column is named url, or two have one name."""
        for name in columns:
            if columns.count(name) > 1:
                raise ConfigError(f"the query gives two columns {name!r}; name them apart with AS")
        own = {name.lower(): place for place, name in reversed(list(enumerate(columns)))}
        if "url" not in own:
            found = ", ".join(columns)
            raise ConfigError(f"the query gives no column url, only {found}; write SELECT ... AS url")
        self._own = [(name, own[name]) for name in REQUEST_COLUMNS if name in own]
        taken = {place for _, place in self._own}
        self._whole = own.get(EXTRA)
        self._rest = [
            (name, place) for place, name in enumerate(columns) if place not in taken and place != self._whole
        ]

    def request(self, row: Sequence[Any]) -> Request:
        """Raises TaskError, which says in one line what is wrong with the row."""
        fields: dict[str, Any] = {}
        for name, place in self._own:
            if (value := row[place]) is not None:
                fields[name] = value
        if not isinstance(fields.get("url"), str):
            raise TaskError("url is NULL" if "url" not in fields else "url is no text")
        if len(fields) > 1:
            _mend(fields)
        extra = {} if self._whole is None or row[self._whole] is None else _object(EXTRA, row[self._whole])
        for name, place in self._rest:
            extra[name] = row[place]
        if extra:
            fields["extra"] = _plain(extra)
        return request_from_fields(fields)


def _mend(fields: dict[str, Any]) -> None:
    """Values of the types that databases have for them."""
    priority = fields.get("priority")
    if isinstance(priority, (Decimal, float)) and priority == priority // 1:
        fields["priority"] = int(priority)
    for name in ("label", "key"):
        if name in fields and not isinstance(fields[name], str):
            fields[name] = str(_plain(fields[name]))
    if "headers" in fields:
        fields["headers"] = _object("headers", fields["headers"])
    if isinstance(body := fields.get("body"), str):
        fields["body"] = body.encode()


def _object(name: str, value: object) -> dict[str, Any]:
    """A JSON object, which some databases give as text."""
    if isinstance(value, str):
        try:
            value = _json.decode(value)
        except msgspec.DecodeError:
            value = None
    if isinstance(value, Mapping):
        return dict(value)
    raise TaskError(f"the column {name} holds no JSON object")


def _plain(value: Any) -> Any:
    """As JSON can say it; what nothing else is known for as its text."""
    try:
        return msgspec.to_builtins(value, str_keys=True, enc_hook=str)
    except (TypeError, ValueError, RecursionError) as error:
        raise TaskError(f"a value is nothing that JSON can hold: {error}") from error

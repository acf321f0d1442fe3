"""HTML forms as requests: what a browser would send when the form is submitted (HTML Standard, 4.10.22)."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit, urlunsplit

from turbohtml import Element

from silkline.errors import ContentError

URLENCODED = "application/x-www-form-urlencoded"

_SUBMIT = "button:not([type]), button[type=submit i], input[type=submit i]"


class Submission:
    """What one form sends. method: GET or POST. action: as written; "" for the page itself. pairs: in order.

    The first button that submits is pressed, as by the Enter key.
    """

    def __init__(self, form: Element) -> None:
        """Raises ContentError for a form that is sent in another way than as URL-encoded pairs."""
        self.method = "POST" if (form.attr("method") or "").strip().lower() == "post" else "GET"
        self.action = (form.attr("action") or "").strip()
        kind = (form.attr("enctype") or "").strip().lower()
        if self.method == "POST" and kind in ("multipart/form-data", "text/plain"):
            raise ContentError(f"the form is sent as {kind}: build its Request yourself")
        self.pairs: list[tuple[str, str]] = form.form_data()
        button = form.select_one(_SUBMIT)
        if button is not None and button.attr("disabled") is None and (name := button.attr("name")):
            self.pairs.append((name, button.attr("value") or ""))

    def fill(self, data: Mapping[str, str | None]) -> None:
        """Set fields by name: a field keeps its place, new ones go to the end, None takes one out."""
        left = dict(data)
        filled: list[tuple[str, str]] = []
        for name, value in self.pairs:
            if name not in data:
                filled.append((name, value))
            elif (given := left.pop(name, None)) is not None:
                filled.append((name, given))
        self.pairs = filled + [(name, value) for name, value in left.items() if value is not None]

    def encoded(self, charset: str) -> str:
        """The pairs URL-encoded; what the charset does not have as `&#NNN;`, as browsers write it."""
        try:
            codecs.lookup(charset)
        except LookupError:
            charset = "utf-8"
        lines = [(name, value.replace("\r\n", "\n").replace("\n", "\r\n")) for name, value in self.pairs]
        return urlencode(lines, encoding=charset, errors="xmlcharrefreplace")


def with_query(url: str, query: str) -> str:
    """The URL with that query in place of its own, and without a fragment."""
    return urlunsplit(urlsplit(url)._replace(query=query, fragment=""))

"""The keys by which a job knows its URLs: the canonical form, without what tracks visitors and sessions.

A key never leaves the program: what is requested is the URL as it was first seen, with all its parameters.
The rules are kept with the job, so that a later run, with other defaults, takes no seen URL for a new one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from silkline.request import Request
from silkline.url import canonical, digest_of, fingerprint_of

DEFAULT = "default"
"""An entry that stands for all of USUAL."""

USUAL = (
    *("utm_*", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "gad_source", "gad_campaignid", "_ga", "_gl"),
    *("fbclid", "msclkid", "yclid", "ysclid", "twclid", "ttclid", "li_fat_id", "igshid", "igsh", "srsltid"),
    *("mc_cid", "mc_eid", "mkt_tok", "_hsenc", "_hsmi", "__hstc", "__hssc", "__hsfp", "hsctatracking"),
    *("oly_anon_id", "oly_enc_id", "vero_id", "_openstat", "_branch_match_id", "s_cid", "wickedid"),
    *("mtm_*", "piwik_*", "pk_campaign", "pk_kwd", "pk_source", "pk_medium", "pk_content"),
    *("jsessionid", "phpsessid", "aspsessionid*", "cfid=token", "cftoken", "oscsid", "zenid"),
    *("sid=token", "sessid=token", "sessionid=token", "session_id=token", "session=token"),
)
"""Parameters of campaigns, of clicks and of sessions. Some names have other uses, such as the `sid` of a
story: those count only where the value looks like a session's."""

_TOKEN_SUFFIX = "=token"
_is_token = re.compile(r"[A-Za-z0-9_.,~-]{16,}").fullmatch
_PATH_PARAMETER = re.compile(r"(;[^;/]*)")


class KeyRules:
    """How URLs are told apart. ignored: names of parameters, in any case of letters, of the query or of the
    path (`;jsessionid=…`); `utm_*` for all that begin so; `sid=token` for one that is ignored only where its
    value is 16 or more letters, digits and "-._~,"; `default` for USUAL."""

    def __init__(self, ignored: Iterable[str] = ()) -> None:
        self.ignored = expanded(ignored)
        plain = [entry for entry in self.ignored if not entry.endswith(_TOKEN_SUFFIX)]
        self._names = frozenset(entry for entry in plain if not entry.endswith("*"))
        self._beginnings = tuple(entry[:-1] for entry in plain if entry.endswith("*"))
        self._tokens = frozenset(self.ignored) - frozenset(plain)

    def canonical(self, url: str) -> str:
        """See `url.canonical`, which says what else makes two URLs equal. Raises BadUrlError."""
        url = canonical(url)
        if ("?" in url or ";" in url) and self.ignored:
            return self._stripped(url)
        return url

    def fingerprint(self, url: str) -> int:
        """Of a GET of the URL. Raises BadUrlError."""
        return digest_of(f"GET\0{self.canonical(url)}\0")

    def of(self, request: Request) -> int:
        """The request's: that of method, URL and body, or of its key. Raises BadUrlError."""
        if request.key is None and request.body is None and request.method == "GET":
            return digest_of(f"GET\0{self.canonical(request.url)}\0")
        if request.key is not None:
            return request.fingerprint
        return fingerprint_of(self.canonical(request.url), request.method, request.body)

    def _stripped(self, url: str) -> str:
        front, _, query = url.partition("?")
        if ";" in front:
            path, *parameters = _PATH_PARAMETER.split(front)
            front = path + "".join(
                text for text in parameters if not (text.startswith(";") and self._ignores(text[1:]))
            )
        if query:
            query = "&".join([pair for pair in query.split("&") if not self._ignores(pair)])
        return f"{front}?{query}" if query else front

    def _ignores(self, pair: str) -> bool:
        name, _, value = pair.partition("=")
        name = name.lower()
        return (
            name in self._names
            or name.startswith(self._beginnings)
            or (len(value) > 15 and name + _TOKEN_SUFFIX in self._tokens and _is_token(value) is not None)
        )


def expanded(ignored: Iterable[str]) -> tuple[str, ...]:
    """With what `default` stands for; sorted, each once."""
    names: set[str] = set()
    for entry in ignored:
        names.update(USUAL if entry == DEFAULT else (entry.lower(),))
    return tuple(sorted(names))


def agreed(asked: Sequence[str], kept: Sequence[str]) -> bool:
    """Whether a job that was begun with the list `kept` may go on where `asked` is the setting."""
    return tuple(asked) == (DEFAULT,) or expanded(asked) == tuple(kept)

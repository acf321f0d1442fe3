"""robots.txt (RFC 9309): what one file says to one crawler.

Which lines speak to us is decided here, line by line, so that a verdict can name its line and so that only
those lines need to be kept; which URLs a rule matches, and which of several rules counts, is protego's part.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from functools import cached_property

import ada_url
import msgspec
from protego import Protego

from silkline.errors import BadUrlError
from silkline.url import resolve

MAX_BYTES = 512_000
"""500 KiB of a file are read (RFC 9309, section 2.5); a line that is cut there is left out."""

MAX_SITEMAPS = 1_000
_MAX_SUSPECTS = 200
"""Rules that are asked one by one which of them refused a URL."""

ROBOTS_PATH = "/robots.txt"

_FIELDS = {
    **dict.fromkeys((b"user-agent", b"useragent", b"user agent"), "agent"),
    **dict.fromkeys(
        (b"disallow", b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw"), "disallow"
    ),
    b"allow": "allow",
    **dict.fromkeys((b"crawl-delay", b"crawl delay"), "crawl-delay"),
    **dict.fromkeys((b"request-rate", b"request rate"), "request-rate"),
    **dict.fromkeys((b"sitemap", b"sitemaps", b"site-map"), "sitemap"),
}
"""As they are written in the wild; the misspellings are those that Google's parser and protego forgive."""

_without_colon = re.compile(
    rb"(user[- ]?agent|d\w+|allow|crawl[- ]delay|request[- ]rate|site-?maps?)[ \t]+(.*)",
    re.I | re.S,
).fullmatch
_line_ends = re.compile(rb"\r\n|\r|\n")
_agent_name = re.compile(rb"[^\s/,;*]+|\*(?=\s|$)").match
_not_plain = re.compile(rb"[^!-~]")
_question_mark = re.compile("%3f", re.I)
_plain_url = re.compile(r"https?://[^/?#\\\s@%]+(/[\w!$&'()*+,\-./:;=?@~]*)", re.ASCII).fullmatch
_product = re.compile(r"[A-Za-z_-]+(?=[/\s(]|$)").match
_compatible = re.compile(r"\(compatible;\s*([A-Za-z_-]+)(?=[/;\s)])").search
_is_product_token = re.compile(r"[A-Za-z_-]+").fullmatch


class Rule(msgspec.Struct, frozen=True, array_like=True):
    """One Allow or Disallow line. path: its value, with everything but visible ASCII percent-encoded."""

    line: int
    allow: bool
    path: str

    def __str__(self) -> str:
        return f"{'Allow' if self.allow else 'Disallow'}: {self.path}"


class RobotsTxt(msgspec.Struct, frozen=True, dict=True):
    """The rules of one robots.txt for one product token, and the sitemaps that it names.

    delay: seconds between two requests that Crawl-delay or Request-rate asks for, the longer of the two.
    """

    rules: tuple[Rule, ...] = ()
    delay: float | None = None
    sitemaps: tuple[str, ...] = ()

    def allows(self, url: str) -> bool:
        """Whether an http(s) URL may be fetched. The longest matching rule counts, Allow where two are
        equal (RFC 9309, section 2.2.2). Raises BadUrlError for what is not a URL."""
        if not self._refuses_anything:
            return True
        match = _plain_url(url)
        if match and "/." not in url:
            path = match[1]
            # A short way that is always right: no rule has what it needs to match this path.
            if not path.startswith(self._prefixes):
                for prefix, part in self._wild:
                    if part in path and path.startswith(prefix):
                        break
                else:
                    return True
        else:
            path = path_of(url)
        return _matched(self._protego, path)

    def deciding(self, url: str) -> Rule | None:
        """The rule that refuses or allows a URL; None where none matches."""
        path = path_of(url)
        if path.partition("?")[0] == ROBOTS_PATH:
            return None
        allowed = self.allows(url)
        suspects = {rule.path: rule for rule in reversed(self.rules) if rule.allow == allowed}
        if "%" not in path:
            suspects = {key: rule for key, rule in suspects.items() if path.startswith(_prefix(rule))}
        longest_first = sorted(suspects.values(), key=lambda rule: len(rule.path), reverse=True)
        for rule in longest_first[:_MAX_SUSPECTS]:
            if not _matched(_protego((Rule(0, False, rule.path),)), path):
                return rule
        return None

    @cached_property
    def _refuses_anything(self) -> bool:
        return not all(rule.allow for rule in self.rules)

    @cached_property
    def _prefixes(self) -> tuple[str, ...]:
        """How a path begins that a Disallow without a wildcard matches."""
        return tuple({_prefix(rule) for rule in self.rules if not rule.allow and "*" not in rule.path})

    @cached_property
    def _wild(self) -> tuple[tuple[str, str], ...]:
        """How a path begins, and what is in it, that a Disallow with a wildcard matches."""
        wild = [rule for rule in self.rules if not rule.allow and "*" in rule.path]
        return tuple({(_prefix(rule), _longest_part(rule)) for rule in wild})

    @cached_property
    def _protego(self) -> Protego:
        return _protego(self.rules)


def read_robots_txt(body: bytes, agent: str, url: str) -> RobotsTxt:
    """What a robots.txt says to the product token `agent`. There is no invalid file: what cannot be read
    as a line of one is passed over (RFC 9309, section 2.3.1.5).

    url: of the file; relative sitemaps are resolved against it.
    """
    ours, others, sitemaps = _Group(agent.lower().encode()), _Group(b"*"), dict[str, None]()
    for number, field, value in _lines(body):
        if field == "sitemap":
            if (
                value
                and len(sitemaps) < MAX_SITEMAPS
                and (found := resolve(url, value.decode("utf-8", "replace")))
            ):
                sitemaps[found] = None
            continue
        for group in (ours, others):
            group.take(number, field, value)
    group = ours if ours.named else others
    return RobotsTxt(rules=tuple(group.rules), delay=_delay(group.rates), sitemaps=tuple(sitemaps))


class _Group:
    """The lines for one name, gathered from all the groups that name it (RFC 9309, section 2.2.1)."""

    def __init__(self, name: bytes) -> None:
        self.named = False
        self.rules: list[Rule] = []
        self.rates: list[str] = []
        self._name = name
        self._rules_are_ours = False
        self._rates_are_ours = False
        self._previous = "rule"

    def take(self, number: int, field: str, value: bytes) -> None:
        if field == "agent":
            # Other lines than rules must not end the list of names (section 2.2.4), but a delay between
            # two names can only be meant for those before it.
            if self._previous != "agent":
                self._rates_are_ours = False
                self._rules_are_ours = self._rules_are_ours and self._previous == "rate"
            match = _agent_name(value)
            if match is not None and match[0].lower() == self._name:
                self.named = self._rules_are_ours = self._rates_are_ours = True
            self._previous = "agent"
        elif field in ("crawl-delay", "request-rate"):
            if self._rates_are_ours:
                self.rates.append(f"{field}: {value.decode('ascii', 'replace')}")
            if self._previous == "agent":
                self._previous = "rate"
        else:
            if self._rules_are_ours and value:
                self.rules.append(Rule(number, field == "allow", _encoded(value)))
            self._previous = "rule"


def path_of(url: str) -> str:
    """The part of a URL that rules are about, as it goes on the wire: path and query.

    Raises BadUrlError for what is not a URL.
    """
    match = _plain_url(url)
    if match and "/." not in url:
        return match[1]
    try:
        serialised = ada_url.normalize_url(url)
    except ValueError as error:
        raise BadUrlError(f"{url[:200]!r} is not a valid URL") from error
    path = serialised.partition("#")[0]
    return path[path.index("/", 8) :]


def product_token(user_agent: str, default: str = "silkline") -> str:
    """The name in a User-Agent by which robots.txt calls the crawler (RFC 9309, section 2.2.1): its first
    product, or of "Mozilla/5.0 (compatible; Name/1.0)" that name; `default` where there is none."""
    match = _product(user_agent)
    if match is None:
        return default
    if match[0].lower() != "mozilla":
        return match[0]
    compatible = _compatible(user_agent)
    return compatible[1] if compatible else default


def is_product_token(name: str) -> bool:
    """Letters, "_" and "-" only (RFC 9309, section 2.2.1)."""
    return _is_product_token(name) is not None


def _lines(body: bytes) -> Iterator[tuple[int, str, bytes]]:
    """(line number, field, value) of every line that has a meaning here."""
    whole = len(body) <= MAX_BYTES
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and b"\0" in body[2:4]:
        body = body[:MAX_BYTES].decode("utf-16", "replace").encode()
    body = body.removeprefix(codecs.BOM_UTF8)[:MAX_BYTES]
    lines = _line_ends.split(body)
    for number, raw in enumerate(lines if whole else lines[:-1], 1):
        line = raw.partition(b"#")[0].strip()
        if not line:
            continue
        name, _, value = line.partition(b":")
        field = _FIELDS.get(b" ".join(name.split()).lower())
        if field is not None:
            yield number, field, value.strip()
        elif (match := _without_colon(line)) and (field := _FIELDS.get(match[1].lower())):
            yield number, field, match[2].strip()


def _encoded(value: bytes) -> str:
    return _not_plain.sub(lambda match: b"%%%02X" % match[0][0], value).decode("ascii")


def _prefix(rule: Rule) -> str:
    """What every plain path that the rule matches begins with."""
    return re.split(r"[*%$]", rule.path, maxsplit=1)[0] if rule.path.startswith("/") else ""


def _longest_part(rule: Rule) -> str:
    """The longest piece of text that every plain path that the rule matches contains."""
    return "" if "%" in rule.path else max(re.split(r"[*$]", rule.path), key=len)


def _protego(rules: Sequence[Rule]) -> Protego:
    lines = "".join(f"{'allow' if rule.allow else 'disallow'}: {_kept_apart(rule.path)}\n" for rule in rules)
    return Protego.parse(f"user-agent: *\n{lines}")


def _matched(rules: Protego, path: str) -> bool:
    return rules.can_fetch(f"http://host{_kept_apart(path)}", "*")


def _kept_apart(path: str) -> str:
    """protego takes an encoded question mark for a plain one; it is part of the path (RFC 3986, 2.2)."""
    return _question_mark.sub("%253F", path) if "%" in path else path


def _delay(lines: Sequence[str]) -> float | None:
    if not lines:
        return None
    rules = Protego.parse("\n".join(("user-agent: *", *lines)))
    rate = rules.request_rate("*")
    delays = [
        *([] if (asked := rules.crawl_delay("*")) is None else [asked]),
        *([] if rate is None else [rate.seconds / rate.requests]),
    ]
    return max(delays, default=None)

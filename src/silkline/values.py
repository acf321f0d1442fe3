"""What the value of a setting may be: its type, its bounds, and how text may be written."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

MiB = 1_048_576
YEAR = 31_536_000

# What each value may be: checked wherever a setting comes from outside (see `resolve.py`). The description
# completes "must be ..." in the message for a value that is not; the form says how text may be written.
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error"],
    Meta(description="debug, info, warning or error", extra={"form": "word"}),
]
Flag = Annotated[bool, Meta(description="on or off", extra={"form": "word"})]
Engine = Annotated[Literal["http", "curl"], Meta(description="http or curl", extra={"form": "word"})]
HttpVersion = Annotated[
    Literal["auto", "1.1", "2", "3"], Meta(description="auto, 1.1, 2 or 3", extra={"form": "word"})
]
Name = Annotated[
    str,
    Meta(
        pattern=r"^\w[\w.-]{0,99}$",
        description="a name of letters, digits, '.', '-' and '_', at most 100 long",
    ),
]
ProductToken = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z_-]{0,100}$",
        description="a product token: letters, '_' and '-' only, such as shop-watch",
    ),
]
Line = Annotated[str, Meta(pattern=r"^[^\r\n\x00]*$", description="one line of text")]
FrontierUrl = Annotated[
    str,
    Meta(
        pattern=r"^(|memory:|[A-Za-z][A-Za-z0-9+.-]*://[^\r\n\x00]*)$",
        description="memory:, sqlite:///path/to/file.db, or redis://host:6379/0",
    ),
]
Contact = Annotated[
    str,
    Meta(
        pattern=r"^(|https?://[^\s()]+|[^\s()@]+@[^\s()@]+)$",
        description="a URL or a mail address at which you can be reached",
    ),
]
_FIELD = r"[^\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]*"
"""What the value of a header may be (RFC 9110, section 5.5), and can be written as UTF-8."""

HeaderLine = Annotated[str, Meta(pattern=rf"^[A-Za-z0-9!#$%&'*+.^_`|~-]+:{_FIELD}$")]
UserAgent = Annotated[
    str, Meta(pattern=rf"^{_FIELD}$", description="one line of text without control characters")
]
Headers = Annotated[
    tuple[HeaderLine, ...],
    Meta(
        description="lines, each as 'Name: value' without control characters",
        extra={"form": "lines", "joint": ": ", "secret": True},
    ),
]
Credentials = Annotated[
    tuple[Line, ...],
    Meta(
        description="lines such as 'https://api.example.com bearer TOKEN' or '... basic USER:PASSWORD'",
        extra={"form": "lines", "joint": " ", "secret": True},
    ),
]
CookieMode = Annotated[
    Literal["off", "session"], Meta(description="off or session", extra={"form": "literal"})
]
IdentityMode = Annotated[
    Literal["silkline", "browser"], Meta(description="silkline or browser", extra={"form": "literal"})
]
RobotsMetaMode = Annotated[
    Literal["links", "all", "off"], Meta(description="links, all or off", extra={"form": "literal"})
]
RefererRule = Literal[
    "off",
    "origin",
    "same-origin",
    "strict-origin",
    "origin-when-cross-origin",
    "strict-origin-when-cross-origin",
    "no-referrer-when-downgrade",
    "unsafe-url",
]
RefererPolicy = Annotated[
    RefererRule,
    Meta(
        description="off, or a policy of W3C Referrer Policy such as strict-origin-when-cross-origin",
        extra={"form": "literal"},
    ),
]
ScopeKind = Annotated[
    Literal["auto", "host", "site", "anywhere"],
    Meta(description="auto, host, site or anywhere", extra={"form": "literal"}),
]
Order = Annotated[
    Literal["breadth", "depth"], Meta(description="breadth or depth", extra={"form": "literal"})
]
Schemes = Annotated[
    tuple[Literal["http", "https"], ...],
    Meta(description="http, https or both", extra={"form": "list"}),
]
Extension = Annotated[str, Meta(pattern=r"^\.?\w{1,20}$")]
Extensions = Annotated[
    tuple[Extension, ...],
    Meta(description="endings such as pdf, or 'media' for pictures, sound, archives", extra={"form": "list"}),
]
Priority = Annotated[str, Meta(pattern=r"^\S.*=\s*[+-]?\d{1,4}$")]
Priorities = Annotated[
    tuple[Priority, ...],
    Meta(description="a pattern of paths, = and a number, such as 'product/*=10'", extra={"form": "list"}),
]
ContentType = Annotated[str, Meta(pattern=r"^[^\s/;,*]+/([^\s/;,*]+|\*)$")]
ContentTypes = Annotated[
    tuple[ContentType, ...],
    Meta(description="content types such as text/html or image/*", extra={"form": "list"}),
]
CacheMode = Annotated[
    Literal["off", "on", "revalidate", "offline"],
    Meta(description="off, on, revalidate or offline", extra={"form": "literal"}),
]
ProxyUrls = Annotated[
    tuple[Line, ...],
    Meta(
        description="proxies such as http://user:password@host:3128 or socks5://host:1080",
        extra={"form": "lines", "secret": True},
    ),
]
Statuses = Annotated[
    tuple[Annotated[int, Meta(ge=100, le=599)], ...],
    Meta(description="a list of HTTP statuses", extra={"form": "list"}),
]
Lines = Annotated[tuple[Line, ...], Meta(description="a list of texts", extra={"form": "lines"})]
Parameter = Annotated[str, Meta(pattern=r"^[^\s=&;/?#*]+(\*|=token)?$")]
Parameters = Annotated[
    tuple[Parameter, ...],
    Meta(
        description="names of parameters such as ref, aff_* or sid=token; 'default' for the usual ones",
        extra={"form": "list"},
    ),
]
Names = Annotated[tuple[Line, ...], Meta(description="a list of texts", extra={"form": "list"})]
Files = Annotated[tuple[Line, ...], Meta(description="a list of file names", extra={"form": "list"})]
Count = Annotated[int, Meta(ge=1, le=2**53, description="a whole number, 1 or more")]
CountOrZero = Annotated[int, Meta(ge=0, le=2**53, description="a whole number, 0 or more")]
Workers = Annotated[int, Meta(ge=1, le=10_000, description="a whole number from 1 to 10000")]
Processes = Annotated[int, Meta(ge=1, le=256, description="a whole number from 1 to 256")]
Partitions = Annotated[int, Meta(ge=1, le=1024, description="a whole number from 1 to 1024")]
PolitenessBy = Literal["host", "domain", "ip"]
Politeness = Annotated[PolitenessBy, Meta(description="host, domain or ip", extra={"form": "word"})]
Dedup = Annotated[
    Literal["exact", "bloom", "none"],
    Meta(description="exact, bloom or none", extra={"form": "word"}),
]
Rate = Annotated[float, Meta(gt=0, le=1_000_000, description="a number of requests a second, more than 0")]
Chance = Annotated[float, Meta(gt=0, lt=1, description="a number between 0 and 1, such as 0.001")]
Port = Annotated[int, Meta(ge=0, le=65_535, description="a port from 1 to 65535, or 0 for any free one")]
_Length = Annotated[float, Meta(le=YEAR, extra={"form": "seconds"})]
_AS = "or a length of time such as 500ms, 30s or 5m"
Seconds = Annotated[_Length, Meta(ge=0, description=f"seconds, 0 or more, {_AS}")]
SomeSeconds = Annotated[_Length, Meta(gt=0, description=f"seconds, more than 0, {_AS}")]


def _size(examples: str, least: int, said: str) -> Meta:
    description = f"a number of bytes, or a size such as {examples}, {said} at least"
    return Meta(ge=least, le=2**53, description=description, extra={"form": "bytes"})


Size = Annotated[int, _size("500KB, 10MB or 32MiB", 1, "1")]
CacheSize = Annotated[int, _size("500MB or 2GiB", 1_000_000, "1MB")]
MEMORY_OF_ONE = 50_000_000
"""Bytes: less than a worker process takes before it visits a page."""

MemorySize = Annotated[int, _size("500MB or 2GiB", MEMORY_OF_ONE, "50MB")]

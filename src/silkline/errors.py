"""Every error silkline raises, and what each one means for the page or the crawl.

    SilklineError
    ├── ConfigError             stop, exit 2   a setting, option or file of the user's is wrong
    │   ├── SettingError        stop, exit 2   a setting whose value cannot be
    │   ├── UnknownLabelError   stop, exit 2   a request names a label that no handler has
    │   └── JobError            stop, exit 2   the frontier file is foreign, newer, or another job's
    ├── FatalError              stop, exit 3   the crawl cannot go on; everything committed is kept
    │   ├── FrontierError                      the store failed: disk full, file damaged, server gone
    │   ├── CacheError                         the HTTP cache failed: disk full, file damaged, server gone
    │   ├── SourceError                        what gives the seeds failed: database gone
    │   └── SinkError                          an output failed: disk full, permission lost
    ├── FetchError              see `engine/retry.py` for which causes are retried
    │   ├── DnsError            "dns"
    │   ├── ConnectError        "connect"
    │   ├── TlsError            "tls"
    │   ├── FetchTimeout        "timeout"      with its phase
    │   ├── ProtocolError       "protocol"     not HTTP, or the message ends early
    │   ├── TooLargeError       "too_large"
    │   ├── DecodeError         "decode"
    │   ├── TooManyRedirects    "too_many_redirects"
    │   ├── BlockedError        "blocked"      a scheme, port or address that is never fetched
    │   ├── ProxyError          "proxy"
    │   │   └── NoProxyError    "proxy"        none works now; visited again, and that costs no retry
    │   ├── BannedError         "banned"       a captcha or the like in place of the page
    │   ├── BadUrlError         "bad_url"
    │   ├── RobotsRefused       "robots"       robots.txt does not allow the URL
    │   ├── OutOfScope          "out_of_scope" a redirect leads out of the crawl's scope
    │   ├── UnwantedContent     "content_type" a page of a kind that the crawl does not take
    │   ├── RobotsUnreachable   "robots_unreachable"  robots.txt cannot be had, so nothing is allowed
    │   ├── SaveError           "save"         a file that cannot be written: no space, no permission
    │   ├── NotCachedError      "not_cached"   the cache does not have it, and nothing may be fetched
    │   └── StatusError         "http_404"...  an answer with a status that is no success
    ├── PageError                              the page's own fault or its handler's; it fails alone
    │   ├── HandlerError        "handler"
    │   ├── ItemError           "item"         an item that no output can hold: it is dead, its page is done
    │   ├── SelectorError       "selector"
    │   ├── ContentError        "content"      parsed as a kind of document that it is not
    │   ├── TaskError           "bad_task"     a task line that is no request
    │   └── PromiseError        "internal"     a middleware or fetcher of the user's gave no sound Response
    ├── Retry                                  raised by a handler to visit the page again later
    ├── Drop                                   raised by a step to leave an item out; counted by its reason
    └── Postponed                              not to be visited now: the lease goes back, uncounted

The quoted word is the cause: it stands in dead letters, logs and metrics, and never carries a URL or
a message, so that it is fit for grouping.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class SilklineError(Exception):
    """The root. `str(error)` is one clear line for the user."""

    cause: str = "error"


class ConfigError(SilklineError):
    """Something the user wrote is wrong: says what, where and how to mend it."""

    cause = "config"


class SettingError(ConfigError):
    """The value of `setting` cannot be. The line begins with its name; where the value comes from is put in
    front by `Resolved.naming_origins`."""

    def __init__(self, setting: str, problem: str, *, named: bool = False) -> None:
        """named: the problem says itself what it is about."""
        super().__init__(problem if named else f"{setting} {problem}")
        self.setting = setting


@contextmanager
def about_setting(setting: str) -> Iterator[None]:
    """What cannot be in here is the value of this setting; the line of the ConfigError says so itself."""
    try:
        yield
    except SettingError:
        raise
    except ConfigError as error:
        raise SettingError(setting, str(error), named=True) from error


class UnknownLabelError(ConfigError):
    """A request's label has no handler. Yielded by a handler it is its page's fault alone, cause "label"."""

    cause = "label"


class JobError(ConfigError):
    """The frontier cannot be used for this job: foreign or newer file, another job's name."""


class FatalError(SilklineError):
    """The crawl has to stop. What was committed is kept; the same command resumes."""

    cause = "fatal"


class FrontierError(FatalError):
    """The frontier's store failed."""


class CacheError(FatalError):
    """The store of the HTTP cache failed."""


class SourceError(FatalError):
    """What gives the seeds failed, in a way that may pass."""


class SinkError(FatalError):
    """An output failed."""


class SinkAwayError(SinkError):
    """An output's server cannot be reached, or cannot take anything at the moment: worth trying again."""


class RowsRefused(SinkError):
    """An output's server will not have a row of those that it was given; none of them was written."""


class FetchError(SilklineError):
    """A request that brought no usable response; the original error is its `__cause__`."""

    cause = "fetch"
    costs_retry = True
    """Whether another visit for it is one of the page's `retries`."""


class DnsError(FetchError):
    cause = "dns"


class ConnectError(FetchError):
    cause = "connect"


class TlsError(FetchError):
    cause = "tls"


class FetchTimeout(FetchError):
    """A time limit ran out. `phase` is what was waited for: "dns", "connect", "tls", "first_byte" (the
    headers), "read" (more of the body), "speed" (the body came too slowly) or "total"."""

    cause = "timeout"

    def __init__(self, message: str, phase: str = "total") -> None:
        super().__init__(message)
        self.phase = phase


class ProtocolError(FetchError):
    cause = "protocol"


class TooLargeError(FetchError):
    cause = "too_large"


class DecodeError(FetchError):
    cause = "decode"


class TooManyRedirects(FetchError):
    cause = "too_many_redirects"


ALLOW_PRIVATE = "--allow-private"
"""Ends the line of a BlockedError that this lets through."""


class BlockedError(FetchError):
    """`host` is the one whose address is refused; "" where it is not for an address."""

    cause = "blocked"

    def __init__(self, message: str, host: str = "") -> None:
        super().__init__(message)
        self.host = host


class ProxyError(FetchError):
    """The proxy failed. refused: it did not get to the server, which may be the server's fault, too.
    denied: it wants other credentials."""

    cause = "proxy"

    def __init__(self, message: str, *, refused: bool = False, denied: bool = False) -> None:
        super().__init__(message)
        self.refused = refused
        self.denied = denied


class NoProxyError(ProxyError):
    """No proxy works at the moment, which is not the page's fault. `retry_after` is in seconds."""

    costs_retry = False

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class BannedError(FetchError):
    """The answer is a page that says "you are blocked", such as a captcha, with a status of success."""

    cause = "banned"


class BadUrlError(FetchError):
    cause = "bad_url"


class RobotsRefused(FetchError):
    """The site's robots.txt does not allow the URL (RFC 9309)."""

    cause = "robots"


class OutOfScope(FetchError):
    """A redirect leads to where the crawl must not go."""

    cause = "out_of_scope"


class UnwantedContent(FetchError):
    """The page is of none of the content types that the crawl takes."""

    cause = "content_type"


class RobotsUnreachable(FetchError):
    """The site's robots.txt cannot be had, which disallows everything (RFC 9309, section 2.3.1.4).

    `retry_after` is in seconds; None where it has been tried for long enough.
    """

    cause = "robots_unreachable"

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class SaveError(FetchError):
    cause = "save"


class NotCachedError(FetchError):
    cause = "not_cached"


class StatusError(FetchError):
    """The server answered, with a status outside 200-299. `retry_after` is in seconds, None if not given."""

    def __init__(self, status: int, retry_after: float | None = None) -> None:
        super().__init__(f"HTTP status {status}")
        self.status = status
        self.retry_after = retry_after
        self.cause = f"http_{status}"


class PageError(SilklineError):
    """One page's fault; no other page is touched."""

    cause = "page"


class HandlerError(PageError):
    """The user's handler raised; `traceback` is the text of its traceback."""

    cause = "handler"

    def __init__(self, message: str, traceback: str = "") -> None:
        super().__init__(message)
        self.traceback = traceback


class ItemError(PageError):
    cause = "item"


class SelectorError(PageError):
    cause = "selector"


class ContentError(PageError):
    cause = "content"


class TaskError(PageError):
    cause = "bad_task"


class PromiseError(PageError):
    """A middleware or fetcher of the user's own gave something else than a Response."""

    cause = "internal"


class Retry(SilklineError):
    """Raise it in a handler to have the page visited again, at most `retries` times.

    `after` is in seconds; None leaves the wait to the usual backoff.
    """

    cause = "retry_asked"

    def __init__(self, reason: str = "the handler asked for a retry", *, after: float | None = None) -> None:
        super().__init__(reason)
        self.after = after


class Drop(SilklineError):
    """Raise it in a pipeline step to leave the item out; the report counts the reasons."""

    cause = "drop"

    def __init__(self, reason: str = "dropped") -> None:
        super().__init__(reason)


class Postponed(SilklineError):
    """The page's host must not be asked for anything now: its lease is given back as if it had not been
    handed out."""

    cause = "postponed"

"""Settings: frozen, resolved once, every value with its unit."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from silkline.files import shown_output
from silkline.values import (
    CacheMode,
    CacheSize,
    Chance,
    Contact,
    ContentTypes,
    CookieMode,
    Count,
    CountOrZero,
    Credentials,
    Dedup,
    Engine,
    Extensions,
    Files,
    Flag,
    FrontierUrl,
    Headers,
    HttpVersion,
    IdentityMode,
    Line,
    Lines,
    LogLevel,
    MemorySize,
    MiB,
    Name,
    Names,
    Order,
    Parameters,
    Partitions,
    Politeness,
    PolitenessBy,
    Port,
    Priorities,
    Processes,
    ProductToken,
    ProxyUrls,
    Rate,
    RefererPolicy,
    RobotsMetaMode,
    Schemes,
    ScopeKind,
    Seconds,
    Size,
    SomeSeconds,
    Statuses,
    UserAgent,
    Workers,
)


class FrontierOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What every frontier needs to know.

    job: the job's name; a store of another job is refused.
    per_host: requests of one host in flight at most, over all workers.
    delay: seconds between two starts on one host at least, over all workers; 0 for none.
    ceiling: requests in flight that a host's pace (see `Frontier.pace`) may allow; None: no pace counts.
    max_pages: budget of visits that end in done or dead, over all workers and runs; None for none. Pages
        that robots.txt keeps us from are not visited (see `outcome.ends_a_visit`).
    lease_seconds: how long a lease lives without a renewal.
    max_deliveries: leases of one request before it becomes a dead letter with cause "crash".
    window: how many seconds ahead of its time a request may be handed out when its host has a delay.
    partitions: parts that the hosts are spread over, so that they can lie on several servers; a job keeps
        the number that it was created with.
    dedup: how it is known which URLs were seen. "exact"; "bloom", in a fraction of the memory, where each
        new URL is taken for a seen one with a chance of bloom_error; "none", every request is enqueued.
    bloom_capacity: URLs that the first Bloom filter holds; it grows by further ones.
    keep_done_urls: also keep the done URLs as text, for other programs to read.
    ignore_params: parameters that make no URL another one, see `keys.KeyRules`; a job keeps those that it was
        created with.
    max_pages_per_host: requests of one host that are taken at most, over all workers, counted from when it is
        set; what is beyond is not seen. None for no limit.
    politeness_by: what counts as one host in all of these: a host with its port, all hosts of a registrable
        domain, or all at one address (see `frontier/groups.py`); a job keeps what it was created with, and
        something else is refused. None: whatever that was, a host where the job is new.

    partitions, dedup and keep_done_urls can only differ from their defaults on a frontier that is a server (redis://).
    """

    job: str = "spider"
    per_host: int = 8
    delay: float = 0.0
    ceiling: int | None = 10_000
    max_pages: int | None = None
    lease_seconds: float = 60.0
    max_deliveries: int = 13
    window: float = 2.0
    partitions: int = 1
    dedup: Literal["exact", "bloom", "none"] = "exact"
    bloom_capacity: int = 10_000_000
    bloom_error: float = 0.001
    keep_done_urls: bool = False
    ignore_params: tuple[str, ...] = ("default",)
    max_pages_per_host: int | None = None
    politeness_by: PolitenessBy | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings of a crawl. Build it with `resolve.settings_from` where the values are a user's.

    frontier: "sqlite:///path", "memory:", a server's such as "redis://host:6379/0", or "" for
        .silkline/<job>.db in the working directory.
    concurrency: visits at once in one process.
    per_host, delay, max_pages, lease_seconds, max_deliveries, partitions, dedup, bloom_capacity,
        bloom_error, keep_done_urls, ignore_params, max_pages_per_host, politeness_by: see FrontierOptions;
        max_deliveries None means retries + 10.
    scope, allow_hosts, allow, deny, paths, schemes, skip_extensions: which links are followed, see
        `politeness/scope.py`. content_types: what pages may be; () for anything.
    max_links: of one page that are looked at.
    traps: whether links that lead nowhere for ever are left out, see `politeness/traps.py`.
    max_pages_per_pattern: links into one folder, numbers left out, that each worker takes.
    near_duplicates: whether the report tells of pages that say the same as others.
    order: "breadth", what was found first; "depth", what is furthest from the start.
    priority: "PATTERN=NUMBER" for the paths of links, see `politeness/order.py`.
    canonical: whether a page whose rel=canonical names a page that is known is its duplicate.
    fetcher: the engine, "http" (aiohttp) or "curl" (libcurl, needs the extra `curl`).
    http_version: "auto" lets engine and server choose; "3" tries HTTP/3 first. 2 and 3 need the engine curl.
    timeout: seconds for one whole fetch, with the redirects that stay on its host.
    connect_timeout: seconds for one connection: resolving the name, TCP and TLS together.
    read_timeout: seconds until all headers are there, and again for each further piece of the body.
    min_speed: bytes per second; a body that stays slower for 30 seconds is given up. 0 for no limit.
    connections: open at once in one process; None for 300, or twice the concurrency where that is more.
    max_headers: bytes of one response's headers.
    insecure: accept any TLS certificate.
    ca_file: PEM file with the certificates to trust in place of the system's.
    visit_timeout: seconds for a whole visit, fetch and handler.
    retries: visits after the first one, for errors that are worth it.
    max_depth: links from a seed; None for no limit.
    max_body: bytes of one decoded body.
    follow_refresh: whether pages are left that refresh (header or <meta>) to another URL within 5 s.
    max_save, save_timeout: bytes of one file (see Request.save_to; None for no limit), and seconds for it, in
        place of max_body and timeout.
    files_dir: the folder that file names are taken in and never lead out of; "" for the working directory,
        and then an absolute path may lead anywhere.
    allow_private: connect to private addresses, too; without it only for hosts that were named as seeds.
    cache: the HTTP cache: "off"; "on", what is fresh is not fetched again; "revalidate", the server is always
        asked whether what is stored is current; "offline", what is stored is replayed and nothing is fetched.
    cache_size: bytes that the cache may take, compressed.
    robots: whether robots.txt is obeyed.
    robots_agent: the product token that it knows us by; "" for the one in user_agent, or silkline.
    robots_patience: seconds for which the pages of a host wait for a robots.txt that cannot be had.
    robots_meta: what pages themselves ask of robots: "links", nofollow is obeyed; "all", noindex too, and
        such a page's items are not kept; "off", neither.
    adaptive: whether hosts are asked more slowly, or more quickly, by what they answer.
    adaptive_floor: requests a second below which no host is slowed down.
    adaptive_ceiling: requests in flight on one host up to which more are tried; None for per_host.
    max_delay: seconds between two starts on one host that its robots.txt can ask for at most.
    max_memory: bytes that all worker processes on this machine may take; None for 0.8 of what the
        container may.
    processes: worker processes on this machine.
    keep_alive: wait for more work when the job is complete, instead of ending.
    fresh: forget the job's earlier state and outputs, and start over.
    strict: dead letters and dead items make the exit code 1.
    grace: seconds that running visits get to end after the first SIGINT or SIGTERM.
    contact: URL or mail address of whoever runs the crawl, shown to the sites in the User-Agent header.
    identity: "silkline" says what it is; "browser" sends header sets as browsers do.
    headers: "Name: value", sent with every request. referer: what links tell of the page they were on.
    auth: credentials by origin, see `fetch/identity/auth.py`.
    sessions: how many sessions the requests that name none are shared among.
    proxy: proxies to go through. proxies: a file or http(s) URL with more of them; proxies_refresh: seconds
        between two looks at that URL. proxy_region: a tag that they must have.
    ban_statuses, ban_markers: what shows that a session or proxy is blocked: statuses, and texts in a page
        besides those that are known.
    cookies: "session" keeps cookies and sends them back; "off" ignores them.
    outputs: files for the items, whose endings name the formats (.jsonl, .jsonl.gz, .csv, .db, ...), and URLs
        of databases. item_key: the fields that are the key of items that are dicts. no_create: tables and
        columns may not be created in databases. excel: CSV and TSV files are for spreadsheets, with a byte
        order mark and without text that is a formula.
    log_file: JSON lines, rotated at 10 MB, 5 kept; None for none.
    debug_http: print each exchange to stderr. har: record them in this HAR file; None for none.
    wire_secrets: whether these two show credentials.
    metrics_port: where Prometheus metrics are served, on metrics_host; None for none.
    """

    job: Name = "spider"
    frontier: FrontierUrl = ""
    concurrency: Workers = 64
    per_host: Workers = 8
    delay: Seconds = 0.0
    politeness_by: Politeness | None = None
    fetcher: Engine = "http"
    http_version: HttpVersion = "auto"
    timeout: SomeSeconds = 60.0
    connect_timeout: SomeSeconds = 10.0
    read_timeout: SomeSeconds = 30.0
    min_speed: CountOrZero = 100
    connections: Count | None = None
    max_headers: Size = 65_536
    insecure: Flag = False
    ca_file: Line = ""
    visit_timeout: SomeSeconds = 300.0
    retries: CountOrZero = 3
    max_pages: Count | None = None
    max_depth: CountOrZero | None = None
    max_body: Size = 32 * MiB
    max_save: Size | None = None
    save_timeout: SomeSeconds = 3_600.0
    files_dir: Line = ""
    max_redirects: CountOrZero = 10
    follow_refresh: Flag = False
    user_agent: UserAgent = ""
    allow_private: Flag = False
    contact: Contact = ""
    identity: IdentityMode = "silkline"
    headers: Headers = ()
    referer: RefererPolicy = "off"
    auth: Credentials = ()
    cookies: CookieMode = "session"
    cache: CacheMode = "off"
    cache_size: CacheSize = 1_024 * MiB
    robots: Flag = True
    robots_agent: ProductToken = ""
    robots_patience: Seconds = 60.0
    robots_meta: RobotsMetaMode = "links"
    max_delay: Seconds = 60.0
    adaptive: Flag = True
    adaptive_floor: Rate = 0.1
    adaptive_ceiling: Workers | None = None
    sessions: Workers = 1
    proxy: ProxyUrls = ()
    proxies: Line | None = None
    proxies_refresh: SomeSeconds = 600.0
    proxy_region: Line = ""
    ban_statuses: Statuses = (403, 429)
    ban_markers: Lines = ()
    max_memory: MemorySize | None = None
    processes: Processes = 1
    keep_alive: Flag = False
    fresh: Flag = False
    strict: Flag = False
    quiet: Flag = False
    grace: Seconds = 10.0
    lease_seconds: SomeSeconds = 60.0
    max_deliveries: Count | None = None
    partitions: Partitions = 1
    dedup: Dedup = "exact"
    bloom_capacity: Count = 10_000_000
    bloom_error: Chance = 0.001
    keep_done_urls: Flag = False
    scope: ScopeKind = "auto"
    allow_hosts: Names = ()
    allow: Lines = ()
    deny: Lines = ()
    paths: Names = ()
    schemes: Schemes = ("http", "https")
    skip_extensions: Extensions = ()
    content_types: ContentTypes = ()
    max_links: Count = 10_000
    traps: Flag = True
    max_pages_per_pattern: Count | None = None
    near_duplicates: Flag = False
    order: Order = "breadth"
    priority: Priorities = ()
    canonical: Flag = False
    ignore_params: Parameters = ("default",)
    max_pages_per_host: Count | None = None
    outputs: Files = ()
    item_key: Names = ()
    no_create: Flag = False
    excel: Flag = False
    log_level: LogLevel = "info"
    log_file: Line | None = None
    debug_http: Flag = False
    har: Line | None = None
    wire_secrets: Flag = False
    metrics_host: Line = "127.0.0.1"
    metrics_port: Port | None = None

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Name and value of each, without what may hold a password: these end up in logs and notebooks."""
        shown: list[tuple[str, Any]] = []
        for field in msgspec.structs.fields(self):
            value = getattr(self, field.name)
            if value and field.name in ("headers", "auth", "proxy", "proxies"):
                value = "***"
            elif field.name == "outputs":
                value = tuple(map(shown_output, value))
            elif field.name == "frontier":
                value = shown_output(value)
            shown.append((field.name, value))
        return shown

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    @property
    def frontier_url(self) -> str:
        return self.frontier or f"sqlite:///.silkline/{self.job}.db"

    @property
    def frontier_options(self) -> FrontierOptions:
        return FrontierOptions(
            job=self.job,
            per_host=self.per_host,
            delay=self.delay,
            ceiling=max(self.per_host, self.adaptive_ceiling or 0) if self.adaptive else None,
            max_pages=self.max_pages,
            lease_seconds=self.lease_seconds,
            max_deliveries=self.retries + 10 if self.max_deliveries is None else self.max_deliveries,
            partitions=self.partitions,
            dedup=self.dedup,
            bloom_capacity=self.bloom_capacity,
            bloom_error=self.bloom_error,
            keep_done_urls=self.keep_done_urls,
            ignore_params=self.ignore_params,
            max_pages_per_host=self.max_pages_per_host,
            politeness_by=self.politeness_by,
        )

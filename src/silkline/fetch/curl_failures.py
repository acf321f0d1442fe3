"""libcurl's error codes -> the error tree: every way a transfer can fail, in one table."""

from __future__ import annotations

import re
from collections.abc import Callable

import pycurl  # type: ignore[import-untyped]

from silkline.errors import (
    BadUrlError,
    ConnectError,
    DnsError,
    FetchError,
    ProtocolError,
    ProxyError,
    TlsError,
)
from silkline.fetch.bounds import headers_too_large, too_many_headers
from silkline.fetch.target import origin
from silkline.fetch.trust import TRUST

_TOO_LARGE = 100
_HTTP2_STREAM, _HTTP3, _QUIC_CONNECT, E_PROXY = 92, 95, 96, 97
"""Codes that pycurl has no name for."""

_TABLE: dict[int, tuple[Callable[[str], FetchError], str]] = {
    pycurl.E_COULDNT_RESOLVE_HOST: (DnsError, "the name cannot be resolved"),
    pycurl.E_COULDNT_RESOLVE_PROXY: (ProxyError, "the proxy's name cannot be resolved"),
    E_PROXY: (ProxyError, "the proxy refused"),
    pycurl.E_COULDNT_CONNECT: (ConnectError, "cannot connect"),
    pycurl.E_INTERFACE_FAILED: (ConnectError, "cannot connect"),
    _QUIC_CONNECT: (ConnectError, "cannot connect by QUIC"),
    pycurl.E_SSL_CONNECT_ERROR: (TlsError, "TLS failed"),
    pycurl.E_PEER_FAILED_VERIFICATION: (TlsError, "TLS failed"),
    pycurl.E_SSL_ENGINE_INITFAILED: (TlsError, "TLS failed"),
    pycurl.E_SSL_ENGINE_NOTFOUND: (TlsError, "TLS failed"),
    pycurl.E_SSL_ENGINE_SETFAILED: (TlsError, "TLS failed"),
    pycurl.E_SSL_CERTPROBLEM: (TlsError, "TLS failed"),
    pycurl.E_SSL_CIPHER: (TlsError, "TLS failed"),
    pycurl.E_SSL_CACERT_BADFILE: (TlsError, "TLS failed"),
    pycurl.E_SSL_CRL_BADFILE: (TlsError, "TLS failed"),
    pycurl.E_SSL_ISSUER_ERROR: (TlsError, "TLS failed"),
    pycurl.E_SSL_SHUTDOWN_FAILED: (TlsError, "TLS failed"),
    pycurl.E_SSL_PINNEDPUBKEYNOTMATCH: (TlsError, "TLS failed"),
    pycurl.E_SSL_INVALIDCERTSTATUS: (TlsError, "TLS failed"),
    pycurl.E_URL_MALFORMAT: (BadUrlError, "the URL cannot be requested"),
    pycurl.E_UNSUPPORTED_PROTOCOL: (ProtocolError, "the answer is not valid HTTP"),
    pycurl.E_BAD_CONTENT_ENCODING: (ProtocolError, "the body has a transfer coding that was not asked for"),
    pycurl.E_FTP_WEIRD_SERVER_REPLY: (ProtocolError, "the answer is not valid HTTP"),
    pycurl.E_GOT_NOTHING: (ProtocolError, "the server closed the connection without an answer"),
    pycurl.E_PARTIAL_FILE: (ProtocolError, "the body is broken or ends early"),
    pycurl.E_SEND_ERROR: (ProtocolError, "the connection broke"),
    pycurl.E_RECV_ERROR: (ProtocolError, "the connection broke"),
    pycurl.E_HTTP2: (ProtocolError, "the answer is not valid HTTP/2"),
    _HTTP2_STREAM: (ProtocolError, "the body is broken or ends early"),
    _HTTP3: (ProtocolError, "the answer is not valid HTTP/3"),
}

_WORDS = (
    ("HTTP/0.9", "it does not begin like HTTP"),
    ("Unsupported HTTP", "its status line is none"),
    ("status line", "its status line is none"),
    ("without colon", "a line of the header has no colon"),
    ("chunk", "a chunk is broken"),
)
"""What libcurl says of an answer that is not valid HTTP, by a part of it, and what we say."""
_NO_HTTP = (pycurl.E_UNSUPPORTED_PROTOCOL, pycurl.E_FTP_WEIRD_SERVER_REPLY, pycurl.E_RECV_ERROR)
_VERIFIED = re.compile(r"SSL certificate OpenSSL verify result: (.*?)(?: \(\d+\))?$")


def failure(error: pycurl.error, url: str, *, proxy: bool = False, max_headers: int = 0) -> FetchError:
    """The error of the tree for one of pycurl, as one line; the caller sets the `__cause__`.

    proxy: it was the proxy that could not be reached. max_headers: the limit in bytes.

    What the table does not know becomes a plain FetchError (cause "fetch") that names the code.
    """
    code, message = error.args[0], str(error.args[1]) if len(error.args) > 1 else ""
    detail = " ".join(message.split())[:300]
    if code == _TOO_LARGE or (code == pycurl.E_RECV_ERROR and "response headers" in detail):
        return too_many_headers() if "many" in detail else headers_too_large(max_headers)
    for part, words in _WORDS:
        if part in detail and code in _NO_HTTP:
            code, detail = pycurl.E_UNSUPPORTED_PROTOCOL, words
    hint = ""
    if code == pycurl.E_GOT_NOTHING:
        detail = ""
    make, what = _TABLE.get(code, (FetchError, f"unexpected libcurl error {code}"))
    if proxy:
        make, what = ProxyError, "the proxy cannot be reached"
    if code == pycurl.E_PEER_FAILED_VERIFICATION and not proxy:
        detail, hint = _VERIFIED.sub(r"\1", detail), f"; {TRUST}"
    return make(f"{what}: {origin(url)}{f' ({detail})' if detail else ''}{hint}")

"""The table from libcurl's error codes to ours: nothing falls through, nothing is hidden."""

from __future__ import annotations

import pycurl
import pytest

from silkline.errors import FetchError, ProtocolError, ProxyError, TooLargeError
from silkline.fetch.curl_failures import failure

URL = "http://u:secret@h.test/path"

OTHER_PROTOCOLS = (
    *("FTP_", "TFTP_", "LDAP_", "RTSP_", "SSH", "TELNET_", "UNKNOWN_TELNET", "FILE_COULDNT", "REMOTE_"),
    *("QUOTE_", "MULTI_", "CHUNK_", "USE_SSL", "BAD_DOWNLOAD", "RANGE_", "UPLOAD_", "CONV_"),
)
NEVER_ASKED_FOR = {
    *("OK", "AGAIN", "ALREADY_COMPLETE", "CALL_MULTI_PERFORM", "BAD_CALLING_ORDER", "BAD_FUNCTION_ARGUMENT"),
    *("OUT_OF_MEMORY", "FAILED_INIT", "NOT_BUILT_IN", "FUNCTION_NOT_FOUND", "LIBRARY_NOT_FOUND"),
    *("UNKNOWN_OPTION", "NO_CONNECTION_AVAILABLE", "SHARE_IN_USE", "OPERATION_TIMEOUTED"),
    *("ABORTED_BY_CALLBACK", "WRITE_ERROR", "READ_ERROR", "SEND_FAIL_REWIND"),  # callbacks of our own
    *("TOO_MANY_REDIRECTS", "HTTP_RETURNED_ERROR", "HTTP_NOT_FOUND", "FILESIZE_EXCEEDED", "LOGIN_DENIED"),
    *("BAD_CONTENT_ENCODING", "BAD_PASSWORD_ENTERED", "MALFORMAT_USER", "URL_MALFORMAT_USER"),
    *("HTTP_POST_ERROR", "HTTP_PORT_FAILED", "HTTP_RANGE_ERROR"),
    "OPERATION_TIMEDOUT",  # see Transfer, which knows what was waited for
}


def names() -> list[str]:
    codes = [name.removeprefix("E_") for name in vars(pycurl) if name.startswith("E_")]
    return [name for name in codes if name not in NEVER_ASKED_FOR and not name.startswith(OTHER_PROTOCOLS)]


@pytest.mark.parametrize("name", names())
def test_each_code_that_can_happen_has_a_class_of_its_own(name: str) -> None:
    error = failure(pycurl.error(getattr(pycurl, f"E_{name}"), "why"), URL)
    assert type(error) is not FetchError


def test_an_unknown_code_is_named_and_not_disguised() -> None:
    error = failure(pycurl.error(4711, "odd\nthing"), URL)
    assert type(error) is FetchError
    assert str(error) == "unexpected libcurl error 4711: http://h.test (odd thing)"


def test_messages_are_one_line_without_credentials() -> None:
    error = failure(pycurl.error(pycurl.E_PARTIAL_FILE, "first\nsecond"), URL)
    assert isinstance(error, ProtocolError)
    assert "\n" not in str(error)
    assert "secret" not in str(error)


def test_headers_that_libcurl_finds_too_large_are_too_large() -> None:
    error = failure(pycurl.error(pycurl.E_RECV_ERROR, "Too large response headers: 307201 > 307200"), URL)
    assert isinstance(error, TooLargeError)


def test_what_the_proxy_did_is_the_proxy_s() -> None:
    error = failure(pycurl.error(pycurl.E_COULDNT_CONNECT, "refused"), URL, proxy=True)
    assert isinstance(error, ProxyError)

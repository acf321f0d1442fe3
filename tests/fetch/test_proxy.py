"""The URL of a proxy, read the same way for every engine."""

from __future__ import annotations

import pytest

from silkline.errors import ProxyError
from silkline.fetch.proxy import ProxyAddress, proxy_address


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://h", ProxyAddress("http", "h", 80, None, None)),
        ("HTTPS://H.example:8443/", ProxyAddress("https", "h.example", 8443, None, None)),
        ("socks5h://h", ProxyAddress("socks5h", "h", 1080, None, None)),
        ("socks5://u:p%40%3A%25@[::1]:9", ProxyAddress("socks5", "::1", 9, "u", "p@:%")),
        ("http://%C3%BC@h:1", ProxyAddress("http", "h", 1, "ü", None)),
    ],
)
def test_each_part_is_read_and_has_its_default(url: str, address: ProxyAddress) -> None:
    assert proxy_address(url) == address


def test_the_location_has_no_credentials_and_brackets_where_they_belong() -> None:
    assert proxy_address("http://u:p@[::1]:9").location == "[::1]:9"
    assert proxy_address("http://u:p@h").location == "h:80"


@pytest.mark.parametrize(
    "url", ["", "h:3128", "ftp://h", "http://", "http://u:secret@h:99999", "http://[::1"]
)
def test_what_is_no_proxy_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ProxyError) as caught:
        proxy_address(url)
    assert "secret" not in str(caught.value)

"""Outputs that are URLs."""

from __future__ import annotations

import pytest

from silkline.errors import ConfigError
from silkline.files import is_address, shown_output
from silkline.outcome import Batch
from silkline.sinks.address import address_of, files_in
from silkline.sinks.choose import keyed_sinks_for


def test_a_url_is_taken_apart_and_its_password_never_shown() -> None:
    url = "postgresql://me:p%40ss@db.example:5432,other/shop%20x?table=My%20items&batch=50&sslmode=require"
    address = address_of(url)
    assert (address.scheme, address.hosts, address.user, address.password) == (
        "postgresql",
        "db.example:5432,other",
        "me",
        "p@ss",
    )
    assert (address.path, address.table, dict(address.options)) == (
        "shop x",
        "My items",
        {"sslmode": "require"},
    )
    assert address.batch == Batch(count=50)
    assert address.shown == "postgresql://db.example:5432,other/shop x?table=My items"
    assert shown_output("mysql://u:p/a@ss@h/db?password=x") == "mysql://h/db"


@pytest.mark.parametrize("char", ["/", "?", "#"])
def test_a_password_that_ends_the_host_too_early_is_shown_in_no_part(char: str) -> None:
    for url in (f"mongodb://u:sesame{char}open@h/shop", f"mongodb://u:{char}sesame@h/shop?table=a"):
        with pytest.raises(ConfigError, match="write special characters") as caught:
            keyed_sinks_for([url])
        assert "sesame" not in str(caught.value)
    with pytest.raises(ConfigError, match="%23"):
        address_of("mongodb://h/shop?table=a#b")
    assert dict(address_of("mongodb://u:p@h/shop?appName=me@here").options) == {"appName": "me@here"}


@pytest.mark.parametrize("option", ["batch=0", "batch=x", "batch_bytes=-1", "batch_seconds=100", "table="])
def test_an_option_with_a_bad_value_is_one_clear_line(option: str) -> None:
    with pytest.raises(ConfigError, match=option.partition("=")[0]) as caught:
        address_of(f"postgresql://u:secret@h/db?{option}")
    assert "secret" not in str(caught.value)


def test_files_and_urls_are_told_apart() -> None:
    assert files_in(["a.csv", "postgresql://h/db", "dir/b.jsonl"]) == ("a.csv", "dir/b.jsonl")
    assert not is_address("C:/items.csv")


def test_a_scheme_that_no_sink_has_is_named() -> None:
    with pytest.raises(ConfigError, match="no output has the scheme gopher://"):
        keyed_sinks_for(["gopher://u:secret@h/x"])

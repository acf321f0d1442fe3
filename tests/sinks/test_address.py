"""Outputs that are URLs."""

from __future__ import annotations

import pytest

from silkline.errors import ConfigError
from silkline.files import is_address, shown_output
from silkline.outcome import Batch
from silkline.sinks.address import address_of, files_in
from silkline.sinks.choose import called, keyed_sinks_for, objects_sink, sinks_for


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


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (
            "mongodb://u:s3cret@h/d?table=a&collection=b",
            "table= and collection= name the same thing; leave one",
        ),
        ("redis+stream://u:s3cret@h/0?stream=a&table=b", "table= and stream= name the same thing; leave one"),
        (
            "postgresql://u:s3cret@h/d?table=a&collection=b",
            "no option 'collection'; there are: app.*, table, ",
        ),
        ("mysql://u:s3cret@h/d?table=a&stream=b", "no option 'stream'; there are: batch, .*, table, "),
        ("clickhouse://u:s3cret@h/d?collection=b", "no option 'collection'; .* and ch_NAME for a setting"),
        ("mongodb://u:s3cret@h/d?stream=b", "no option 'stream'; there are: batch, .*and those of PyMongo"),
        ("redis+stream://u:s3cret@h/0?collection=b", "no option 'collection'; there are: .*remember, stream"),
        ("s3://b/a.csv?access_key_id=s3cret&table=b", "'table' is not valid .*; there are: part_bytes, "),
    ],
)
def test_an_option_that_another_kind_of_output_has_is_refused_and_the_known_ones_named(
    output: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        objects_sink(output) if output.startswith("s3") else keyed_sinks_for([output])
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_table_may_be_named_by_the_word_for_all_databases() -> None:
    (sink,) = keyed_sinks_for(["mongodb://h/d?table=a"])
    assert sink.name == "mongodb://h/d?collection=a"


def test_files_and_urls_are_told_apart() -> None:
    assert files_in(["a.csv", "postgresql://h/db", "dir/b.jsonl"]) == ("a.csv", "dir/b.jsonl")
    assert not is_address("C:/items.csv")


def test_a_scheme_that_no_sink_has_is_named() -> None:
    with pytest.raises(ConfigError, match="no output has the scheme gopher://"):
        keyed_sinks_for(["gopher://u:secret@h/x"])


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("postgresql://u:s3@h/db?sslmode=require&table=a.b&batch=1", "postgresql://h/db?table=a.b"),
        ("mongodb://h/db?collection=c", "mongodb://h/db?collection=c"),
        ("s3://b/a.csv?secret_access_key=s3&access_key_id=s3", "s3://b/a.csv"),
        ("mysql://u:s3?table=s3@h/db", "mysql://h/db"),
        ("postgresql:/u:s3@h/db", "postgresql:/h/db"),
        ("a:b/me@home.csv", "a:b/me@home.csv"),
    ],
)
def test_an_output_is_shown_with_what_names_its_table_and_no_secret(output: str, shown: str) -> None:
    assert shown_output(output) == shown
    assert shown_output(shown) == shown


@pytest.mark.parametrize("path", ["test", "test.csv", "test/", "test.warc.gz"])
def test_a_url_with_one_slash_is_told_so_without_its_password(path: str) -> None:
    with pytest.raises(ConfigError, match="write two slashes behind postgresql: postgresql://") as caught:
        sinks_for([f"postgresql:/u:s3cret@h/{path}"])
    assert "s3cret" not in str(caught.value)


def test_an_item_can_name_a_database_as_it_is_shown() -> None:
    one, two = "postgresql://u:s3cret@h/db?table=a&batch=5", "mysql://u:s3cret@h/shop"
    names = called([one, two])
    assert names["postgresql://h/db?table=a"] == names["postgresql://h/db"] == names[one]
    assert names["mysql://h/shop"] == names["mysql://h/shop?table=items"] == names[two]
    both = called([one, one.replace("table=a", "table=b")])
    assert "postgresql://h/db" not in both
    assert both["postgresql://h/db?table=b"] != both["postgresql://h/db?table=a"]
    plain = called([one, "postgresql://u:s3cret@h/db"])
    assert plain["postgresql://h/db"] == "postgresql://h/db?table=items"

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from silkline.config import Settings
from silkline.errors import ConfigError
from silkline.files import shown_output
from silkline.resolve import BARE_NAMES, FIELDS, KINDS, convert, redacted, resolve, settings_from, shown
from silkline.values import MiB


@pytest.fixture(autouse=True)
def empty_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_source_wins_over_the_weaker_ones(tmp_path: Path) -> None:
    (tmp_path / "silkline.toml").write_text("timeout = 40\nretries = 4\ndelay = 4\nper-host = 4\n")
    environ = {
        "SILKLINE_RETRIES": "5",
        "RETRIES": "6",
        "DELAY": "6",
        "SILKLINE_PER_HOST": "5",
        "PER_HOST": "6",
    }
    spider = {"timeout": 20.0, "max_depth": 2, "retries": 2}
    found = resolve({"per_host": "7", "fresh": None}, environ, spider=spider, spider_name="spider.py")

    assert (found.settings.per_host, found.origins["per_host"]) == (7, "--per-host")
    assert (found.settings.retries, found.origins["retries"]) == (5, "environment variable SILKLINE_RETRIES")
    assert (found.settings.delay, found.origins["delay"]) == (6.0, "environment variable DELAY")
    assert (found.settings.timeout, found.origins["timeout"]) == (40.0, "silkline.toml")
    assert (found.settings.max_depth, found.origins["max_depth"]) == (2, "spider.py")
    assert (found.settings.concurrency, found.origins["concurrency"]) == (64, "default")
    assert found.origins["fresh"] == "default"


@pytest.mark.parametrize("name", sorted(set(FIELDS) - BARE_NAMES))
def test_bare_variables_of_other_programs_are_left_alone(name: str) -> None:
    assert resolve({}, {name.upper(): "5"}).settings == Settings()


def test_an_empty_variable_counts_as_unset() -> None:
    assert resolve({}, {"SILKLINE_DELAY": "", "DELAY": " 3 "}).settings.delay == 3.0


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("timeout", "30", 30.0),
        ("timeout", "0.5", 0.5),
        ("timeout", "500ms", 0.5),
        ("timeout", "5m", 300.0),
        ("delay", "1.5 h", 5400.0),
        ("max_body", "10MB", 10_000_000),
        ("max_body", "512KiB", 524_288),
        ("max_body", "1.5 mib", 3 * MiB // 2),
        ("max_body", "100", 100),
        ("max_pages", "none", None),
        ("max_pages", 10, 10),
        ("strict", "yes", True),
        ("strict", "0", False),
        ("strict", "False", False),
        ("log_level", "WARNING", "warning"),
        ("log_level", "WARN", "warning"),
        ("log_level", "warn", "warning"),
        ("outputs", "a.csv, b.jsonl", ("a.csv", "b.jsonl")),
        ("outputs", ["a,b.csv"], ("a,b.csv",)),
    ],
)
def test_values_are_read_with_their_units(name: str, text: object, value: object) -> None:
    assert convert(name, text, "here") == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("concurrency", "0"),
        ("concurrency", "many"),
        ("concurrency", "1.5"),
        ("concurrency", True),
        ("concurrency", None),
        ("processes", "1000"),
        ("timeout", "0"),
        ("timeout", "nan"),
        ("timeout", "inf"),
        ("timeout", "5 parsecs"),
        ("delay", "-1"),
        ("max_body", "10M"),
        ("max_body", "9" * 400 + "GB"),
        ("metrics_port", "70000"),
        ("log_level", "loud"),
        ("strict", "perhaps"),
        ("job", "a/b"),
        ("job", ""),
        ("frontier", "job.db"),
        ("frontier", "true"),
        ("user_agent", "a\r\nb: c"),
        ("outputs", 5),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_with_what_is(name: str, text: object) -> None:
    with pytest.raises(ConfigError) as caught:
        convert(name, text, "environment variable X")
    message = str(caught.value)
    assert message.startswith(f"environment variable X: {name} must be {KINDS[name].allowed}, not ")
    assert "\n" not in message


def test_the_source_of_a_bad_value_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^--concurrency: concurrency must be"):
        resolve({"concurrency": "x"}, {})
    with pytest.raises(ConfigError, match=r"^environment variable SILKLINE_CONCURRENCY: "):
        resolve({}, {"SILKLINE_CONCURRENCY": "x", "CONCURRENCY": "3"})
    config = tmp_path / "other.toml"
    config.write_text("concurrency = 'x'")
    with pytest.raises(ConfigError, match=r"other\.toml: concurrency must be .*, not 'x'$"):
        resolve({}, {}, config=config)


def test_a_bad_value_that_is_overruled_harms_nobody() -> None:
    found = resolve({"delay": "1"}, {"DELAY": "other program's", "SILKLINE_RETRIES": "1", "RETRIES": "often"})
    assert (found.settings.delay, found.settings.retries, found.warnings) == (1.0, 1, ())


@pytest.mark.parametrize("name", sorted(BARE_NAMES))
def test_a_bare_variable_of_another_program_is_warned_about_and_ignored(tmp_path: Path, name: str) -> None:
    (tmp_path / "silkline.toml").write_text("delay = 4\n")
    found = resolve({}, {name.upper(): "other program's"})
    assert found.settings == Settings(delay=4.0)
    assert found.origins[name] == ("silkline.toml" if name == "delay" else "default")
    [warning] = found.warnings
    assert warning.startswith(f"environment variable {name.upper()}: {name} must be ")
    assert warning.endswith(f"ignored (if it is meant for silkline: SILKLINE_{name.upper()})")


def test_settings_that_are_not_asked_for_are_not_even_looked_at(tmp_path: Path) -> None:
    (tmp_path / "silkline.toml").write_text("concurrency = 'x'\njob = 'shop'\n")
    environ = {"SILKLINE_TIMEOUT": "x", "DELAY": "x", "FRONTIER": "memory:"}
    found = resolve({}, environ, names=("job", "frontier"))
    assert found.settings == Settings(job="shop", frontier="memory:")
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("concurency = 3", "there is no setting 'concurency'; did you mean 'concurrency'?"),
        ("[crawl]\ndelay = 3", "there is no setting 'crawl'; the settings are job, frontier,"),
        ("delay = ", "is not valid TOML: Invalid value (at "),
        (
            "retries = 1\njob = 'a'\nuser_agent = \"bot\n",
            "is not valid TOML: a quoted text is not closed at the end of its line (at line 3, column 18)",
        ),
        ("delay = \x1b[2J", "is not valid TOML: Invalid value (at line 1, column 9)"),
        ("delay = '\xff'", "cannot be read: "),
    ],
)
def test_a_wrong_toml_file_is_one_clear_line(tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "silkline.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError) as caught:
        resolve({}, {})
    assert str(caught.value).startswith(f"silkline.toml: {line}")
    assert str(caught.value).isprintable()


def test_a_named_toml_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml: no such file"):
        resolve({}, {}, config=Path("nowhere.toml"))
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        resolve({}, {}, config=tmp_path)


def test_a_misspelt_variable_is_warned_about_and_an_unknown_one_is_not() -> None:
    warnings = resolve({}, {"SILKLINE_CONCURENCY": "3", "SILKLINE_SOAK": "1"}).warnings
    assert warnings == (
        "the environment variable SILKLINE_CONCURENCY is no setting; did you mean SILKLINE_CONCURRENCY?",
    )


def test_settings_of_a_program_are_checked_the_same_way() -> None:
    base = Settings(delay=2.0)
    assert settings_from({"timeout": "1m"}, "Crawler()", base) == Settings(delay=2.0, timeout=60.0)
    with pytest.raises(ConfigError, match=r"Crawler\(\): there is no setting 'speed'"):
        settings_from({"speed": 1}, "Crawler()")
    with pytest.raises(ConfigError, match=r"Crawler\(\): retries must be"):
        settings_from({"retries": -1}, "Crawler()")


def test_defaults_are_allowed_values() -> None:
    for name in FIELDS:
        value = getattr(Settings(), name)
        assert convert(name, value, "default") == value


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("redis://user:secret@host:1/0", "redis://user:***@host:1/0"),
        ("redis://:s3c@ret@host/0", "redis://:***@host/0"),
        ("redis://user@host/0", "redis://user@host/0"),
        ("sqlite:///a/b.db", "sqlite:///a/b.db"),
        ("x://[:secret@host", "x://[:***@host"),
        ("postgresql://me:pa/ss?w#rd@host/db", "postgresql://me:***@host/db"),
        ("postgresql://h/db?user=me&password=secret&a=b", "postgresql://h/db?user=me&password=***&a=b"),
        ("mysql://h/db?ssl_key_password=secret", "mysql://h/db?ssl_key_password=***"),
        ("redis://:se/cr?t#@host:1/0", "redis://:***@host:1/0"),
        ("https://p.example/list?token=secret&a=b", "https://p.example/list?token=***&a=b"),
        ("https://p.example/list?a=b&api_key=secret", "https://p.example/list?a=b&api_key=***"),
        ("https://p.example/list?key=secret&sort=key", "https://p.example/list?key=***&sort=key"),
        ("unix:///run/redis.sock?db=1&password=secret", "unix:///run/redis.sock?db=1&password=***"),
        ("redis://host/0?PASSWORD=secret&db=2", "redis://host/0?PASSWORD=***&db=2"),
        ("redis+sentinel://u:secret@a:1,b:2/main", "redis+sentinel://u:***@a:1,b:2/main"),
        ("https://shop.example/@someone?page=2", "https://shop.example/@someone?page=2"),
    ],
)
def test_passwords_are_not_shown(text: str, safe: str) -> None:
    assert redacted(text) == safe
    assert shown("frontier", Settings(frontier=text)) == safe
    assert shown("outputs", Settings(outputs=(text, "b.csv"))) == f"{shown_output(text)}, b.csv"


def test_a_value_found_later_takes_the_place_of_the_first_with_its_own_origin() -> None:
    first = resolve({"delay": "1"}, {})
    later = first.having("job", "shop-1", "named after the crawl")
    assert (later.settings.job, later.origins["job"]) == ("shop-1", "named after the crawl")
    assert (later.settings.delay, later.origins["delay"]) == (1.0, "--delay")
    assert (first.settings.job, first.origins["job"]) == ("spider", "default")


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [("delay", 30.0, "30"), ("delay", 0.25, "0.25"), ("strict", True, "true"), ("max_pages", None, "none")],
)
def test_values_are_shown_as_they_could_be_written(name: str, value: object, text: str) -> None:
    assert shown(name, Settings(**{name: value})) == text  # type: ignore[arg-type]
    assert convert(name, text, "here") == value


def test_headers_may_be_keys_and_are_not_shown() -> None:
    given = {"headers": ["X-Api-Key: TOPSECRET"]}
    assert shown("headers", settings_from(given, "here")) == "X-Api-Key: ***"
    with pytest.raises(ConfigError) as caught:
        settings_from({"headers": ["X-Api-Key: TOPSECRET", "bad TOPSECRET"]}, "here")
    assert "TOPSECRET" not in str(caught.value)


def test_a_delay_of_hours_is_said_in_words() -> None:
    def warnings(delay: str) -> tuple[str, ...]:
        return resolve({"delay": delay}, {}).warnings

    assert warnings("100d") == ("--delay: one page of each host every 100 d (delay = 8.64e+06 s)",)
    assert warnings("90m") == ("--delay: one page of each host every 1.5 h (delay = 5400 s)",)
    assert warnings("59m") == ()


def test_of_several_values_the_bad_one_is_named() -> None:
    with pytest.raises(ConfigError) as raised:
        resolve({"priority": ["a/*=1", "b"]}, {})
    assert str(raised.value) == (
        "--priority: priority must be a pattern of paths, = and a number, such as 'product/*=10', not 'b'"
    )
    with pytest.raises(ConfigError, match="--robots: robots must be on or off, not 'maybe'"):
        resolve({"robots": "maybe"}, {})


def test_a_line_that_may_be_a_secret_is_named_by_its_place() -> None:
    with pytest.raises(ConfigError, match=r"--header: headers must be .*; entry 2 is not$") as error:
        resolve({"headers": ["A: b", "T0PSECRET"]}, {})
    assert "T0PSECRET" not in str(error.value)
    with pytest.raises(ConfigError, match=r"max_body must be .*, 1 at least, not '0'"):
        resolve({"max_body": "0"}, {})


@pytest.mark.parametrize(
    ("given", "warned"),
    [
        ({"insecure": True, "ca_file": "ca.pem"}, "insecure takes any certificate: ca_file has no effect"),
        ({"wire_secrets": True}, "wire_secrets has no effect"),
        ({"wire_secrets": True, "debug_http": True}, ""),
        ({"wire_secrets": True, "outputs": ["a.warc.gz"]}, ""),
        ({"insecure": True}, ""),
    ],
)
def test_a_setting_without_effect_is_warned_about(given: dict[str, Any], warned: str) -> None:
    lines = resolve(given, {}).warnings
    assert len(lines) == bool(warned)
    assert all(line.startswith(warned) for line in lines)
    assert resolve(given, {}, names=["insecure", "ca_file", "wire_secrets"]).warnings == ()

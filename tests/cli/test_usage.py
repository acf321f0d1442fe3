"""What is wrong with a command is one clear line and exit 2; most of it needs no process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from silkline.cli.options import SETTINGS
from silkline.config import Settings
from silkline.resolve import FIELDS, convert, option_of
from silkline.version import __version__
from tests.cli.conftest import Call, Run
from tests.site import Site

URL = "http://127.0.0.1:9/"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("crawl", "nothing to crawl: give a URL, such as https://example.com/, or --urls FILE"),
        ("crawl shop.example", "'shop.example' has no scheme; write https://shop.example"),
        (f"crawl {URL} ftp://a/", "'ftp://a/' is not an http or https URL"),
        (f"crawl {URL} --colour", "No such option: --colour"),
        (f"crawl {URL} --concurrency", "Option '--concurrency' requires an argument"),
        (f"crawl {URL} --concurrency 0", "--concurrency: concurrency must be a whole number from 1 to 10000"),
        (f"crawl {URL} --max-body 10M", "--max-body: max_body must be a number of bytes, or a size such as"),
        (
            f"crawl {URL} --cache on --cache-size 1",
            "--cache-size: cache_size must be a number of bytes",
        ),
        (
            f"crawl {URL} --max-memory 5",
            "--max-memory: max_memory must be a number of bytes, or a size such as 500MB or 2GiB, 50MB at",
        ),
        (
            f"crawl {URL} --max-memory 120MB --processes 3",
            "--max-memory: max_memory is 120 MB for 3 processes together, of which each takes 50 MB",
        ),
        (
            f"crawl {URL} --adaptive-ceiling 4",
            "--adaptive-ceiling: adaptive_ceiling is 4, but per_host lets 8 requests at once through",
        ),
        (f"crawl {URL} --header X:\x01", "--header: headers must be lines, each as 'Name: value' without"),
        (f"crawl {URL} --user-agent a\x1bb", "--user-agent: user_agent must be one line of text without"),
        (
            f"crawl {URL} --header X:1 --header x:2",
            "--header: headers: x is there twice; write its values into one",
        ),
        (f"crawl {URL} --frontier memory: --processes 2", "frontier memory: is for one process"),
        (f"crawl {URL} --frontier mysql://x", "'mysql://x' is no frontier: write memory:, or sqlite:///"),
        (
            f"crawl {URL} -o items.xls",
            "--output: output 'items.xls': its ending names no format; known are .jsonl",
        ),
        (
            f"crawl {URL} -o pictures",
            "--output: output 'pictures': its ending names no format; known are .jsonl",
        ),
        (
            f"crawl {URL} -o postgresql://",
            "--output: output 'postgresql:///?table=items' names no database: write postgresql://user",
        ),
        (
            f"crawl {URL} --item-key ,",
            "--item-key: item_key must be the name of a field, or several, not ','",
        ),
        (f"crawl {URL} --field h1", "field 'h1' has no '='; write NAME=CSS"),
        (f"crawl {URL} --item div", "--item needs fields"),
        ("crawl --urls nowhere.txt", "nowhere.txt: no such file"),
        ("crawl --urls .", ". is a directory, not a file of URLs"),
        (f"crawl {URL} --config nowhere.toml", "nowhere.toml: no such file"),
        ("run", "Missing argument 'FILE[:NAME]'"),
        ("run nowhere.py", "nowhere.py: no such file"),
        ("demo --port 70000", "70000 is not a port"),
        ("demo --crawl --port 70000", "70000 is not a port"),
        ("dead list", "which job? there is none in .silkline/; name it with --job NAME"),
        (
            "dead stats --job nowhere",
            "there is no job 'nowhere': sqlite:///.silkline/nowhere.db does not exist",
        ),
        ("dead drop --frontier sqlite:///nowhere.db", "there is no job: sqlite:///nowhere.db does not exist"),
        ("status --frontier memory:", "there is no job: memory: keeps nothing"),
        ("status --job a/b", "--job: job must be a name of letters"),
        ("crwal", "No such command 'crwal'"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing_behind(
    words: str, line: str, inside: Call, tmp_path: Path
) -> None:
    done = inside(*words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"silkline: {line}")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_binary_urls_are_refused(inside: Call, tmp_path: Path) -> None:
    (tmp_path / "urls.bin").write_bytes(b"\x7fELF\x00\x01")
    done = inside("crawl", "--urls", "urls.bin")
    assert done == (2, "", "silkline: urls.bin is a binary file, not a list of URLs\n")


def test_no_urls_are_not_a_finished_job(inside: Call, silkline: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("# later\n")
    assert inside("crawl", "--urls", "empty.txt") == (2, "", "silkline: empty.txt holds no URL\n")
    assert [path.name for path in tmp_path.iterdir()] == ["empty.txt"]
    done = silkline("crawl", "--urls", "-", "--quiet", stdin="")
    assert (done.returncode, done.stderr) == (2, "silkline: standard input holds no URL\n")


def test_what_is_named_in_a_line_cannot_move_the_cursor(inside: Call) -> None:
    done = inside("crawl", "--urls", "\x1b[2Jurls.txt")
    assert done == (2, "", "silkline:  [2Jurls.txt: no such file\n")


def test_a_traceback_is_shown_only_for_debug(inside: Call) -> None:
    lines = inside("run", "nowhere.py", "--debug").stderr.splitlines()
    assert lines[0].startswith("Traceback")
    assert lines[-1] == "silkline: nowhere.py: no such file"


def test_an_error_of_our_own_is_a_line_too(inside: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a bug\nin silkline")

    monkeypatch.setattr("silkline.cli.crawl.resolve", broken)
    done = inside("crawl", URL)
    assert done == (3, "", "silkline: unexpected RuntimeError: a bug in silkline; --debug shows where\n")
    assert "test_usage.py" in inside("crawl", URL, "--debug").stderr


def test_every_setting_is_shown_with_its_origin(
    inside: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "silkline.toml").write_text(
        "timeout = '1m'\nfrontier = 'redis://me:secret@store.example/0'\n"
    )
    monkeypatch.setenv("SILKLINE_RETRIES", "7")
    monkeypatch.setenv("CONCURRENCY", "200")
    monkeypatch.setenv("SILKLINE_CONCURENCY", "201")
    done = inside("crawl", "https://shop.example/", "--delay", "500ms", "--show-config")
    assert done.returncode == 0
    shown = {line.split()[0]: line.split(maxsplit=2)[1:] for line in done.stdout.splitlines()}
    assert shown["timeout"] == ["60", "silkline.toml"]
    assert shown["frontier"] == ["redis://me:***@store.example/0", "silkline.toml"]
    assert shown["retries"] == ["7", "environment variable SILKLINE_RETRIES"]
    assert shown["concurrency"] == ["200", "environment variable CONCURRENCY"]
    assert shown["delay"] == ["0.5", "--delay"]
    assert shown["per_host"] == ["8", "default"]
    assert shown["job"][0].startswith("shop.example-")
    assert shown["outputs"][1] == "kept beside the job"
    assert "me:secret" not in done.stdout
    assert "did you mean SILKLINE_CONCURRENCY?" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["silkline.toml"]


def test_help_says_what_there_is_and_loads_no_engine() -> None:
    code = (
        "import sys; from silkline.cli.main import main; main(sys.argv[1:]); "
        "print(sorted({'aiohttp', 'uvloop', 'turbohtml', 'sqlite3', 'prometheus_client'} & set(sys.modules)))"
    )
    for words, expected in [
        (["--help"], ["crawl", "run", "demo", "dead", "status"]),
        (["crawl", "--help"], ["--field", "--follow-all", "[default: 64]", "Examples", "Limits"]),
        (["dead", "--help"], ["list", "stats", "resend", "drop"]),
    ]:
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=60, check=True
        )
        assert all(word in done.stdout for word in expected), done.stdout
        assert done.stdout.splitlines()[-1] == "[]"


def test_the_version_is_printed(inside: Call) -> None:
    assert inside("--version") == (0, f"silkline {__version__}\n", "")


@pytest.mark.parametrize("words", [[], ["dead"]])
def test_no_command_shows_the_commands_there_are(inside: Call, words: list[str]) -> None:
    done = inside(*words)
    assert done.returncode == 2
    assert "Commands" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("name", sorted(set(SETTINGS) - {"job", "frontier", "user_agent"}))
def test_the_default_in_the_help_is_the_one_that_is_used(name: str) -> None:
    [option] = SETTINGS[name].__metadata__
    told = re.search(r"\[default: (.*)\]", option.help)
    default = getattr(Settings(), name)
    assert convert(name, told[1], "help") == default if told else not default


def test_every_option_of_the_settings_is_a_setting() -> None:
    assert set(SETTINGS) <= set(FIELDS)


def test_what_a_job_counts_as_one_host_is_kept_shown_and_not_changed(inside: Call, shop: Site) -> None:
    def crawl(*words: str) -> tuple[int, str]:
        ran = inside("crawl", f"{shop.url}/gone", "--job", "one", *words)
        return ran.returncode, ran.stdout + ran.stderr

    def in_force(*words: str) -> list[str]:
        table = crawl("--show-config", *words)[1]
        return next(
            line.split(maxsplit=1)[1] for line in table.splitlines() if line.startswith("politeness_by")
        ).split()

    assert in_force() == ["host", "default"]
    assert crawl("--politeness-by", "domain", "--quiet")[0] == 0
    assert in_force() == ["domain", "kept", "with", "the", "job"]
    for words in (
        ["--politeness-by", "host"],
        ["--politeness-by", "ip"],
        ["--politeness-by", "host", "--show-config"],
    ):
        code, told = crawl(*words)
        assert code == 2
        assert f"the job 'one' was created with politeness_by = domain, not {words[1]}" in told
    assert in_force("--politeness-by", "host", "--fresh") == ["host", "--politeness-by"]


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("allow", "(", "allow '(' is no regular expression: missing )"),
        ("deny", "(", "deny '(' is no regular expression: missing )"),
        ("paths", "x", "paths 'x' is no beginning of a path; write /products/"),
        ("allow_hosts", "a b", "allow_hosts 'a b' is no host; write cdn.example.com"),
        ("priority", "a=2000", "priority 'a=2000' is outside -1000..1000"),
        ("item_key", "sku", "item_key 'sku' is a field of no item; there are url, status, title"),
    ],
)
def test_a_value_that_cannot_be_is_told_with_the_place_it_comes_from(
    name: str, value: str, line: str, inside: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(*words: str) -> str:
        done = inside("crawl", URL, *words)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        return done.stderr

    assert told(option_of(name), value).startswith(f"silkline: {option_of(name)}: {line}")
    (tmp_path / "silkline.toml").write_text(f"{name} = [{value!r}]\n")
    assert told().startswith(f"silkline: silkline.toml: {line}")
    monkeypatch.setenv(f"SILKLINE_{name.upper()}", value)
    assert told().startswith(f"silkline: environment variable SILKLINE_{name.upper()}: {line}")
    assert [path.name for path in tmp_path.iterdir()] == ["silkline.toml"]


def test_a_ceiling_below_the_cap_is_of_no_matter_where_no_pace_counts(inside: Call, shop: Site) -> None:
    done = inside("crawl", f"{shop.url}/gone", "--adaptive", "off", "--adaptive-ceiling", "4", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("proxy = ['nonsense']", "proxy, entry 1: is no proxy; "),
        ("proxies = 'none.txt'", "none.txt: the proxies cannot be read: "),
        ("proxies = 'empty.txt'", "empty.txt: there is no proxy in it"),
        ("proxy_region = 'de'", "proxy_region chooses among proxies: "),
        ("auth = ['h.example token x']", "auth, entry 1: is not in its form; "),
        ("headers = ['Content-Length: 3']", "headers: Content-Length"),
        ("ca_file = 'none.pem'", "ca_file: 'none.pem' holds no certificates "),
        ("outputs = ['items.foo']", "output 'items.foo'"),
    ],
)
def test_what_cannot_be_is_told_with_the_file_that_says_it(
    inside: Call, tmp_path: Path, line: str, told: str
) -> None:
    (tmp_path / "silkline.toml").write_text(line)
    (tmp_path / "empty.txt").write_text("")
    done = inside("crawl", "http://127.0.0.1:9/")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith(f"silkline: silkline.toml: {told}"), done.stderr

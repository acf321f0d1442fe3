from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from silkline.errors import ConfigError
from silkline.request import Request
from silkline.seeds import Seeds
from silkline.seeds.entries import BATCH
from tests.seeds.reading import a_file, urls_of


def test_urls_requests_iterables_and_files_come_in_order(tmp_path: Path) -> None:
    path = a_file(tmp_path, b"http://c/\nhttp://d/")
    request = Request("http://b/", label="x")
    seeds = Seeds("http://a/", request, path, iter(["http://e/", Request("http://f/")]))
    assert urls_of(seeds) == [f"http://{name}/" for name in "abcdef"]
    assert seeds.invalid == 0
    assert request in [r for batch in Seeds(request) for r in batch]


@pytest.mark.parametrize("seed", ["shop.example", Request("shop.example")])
def test_a_url_without_a_scheme_says_what_to_write(seed: str | Request) -> None:
    with pytest.raises(ConfigError, match=r"write https://shop\.example"):
        Seeds("http://a/", seed)


@pytest.mark.parametrize("seed", [5, None, b"http://a/", {"url": "http://a/"}])
def test_what_cannot_be_a_seed_is_refused(seed: object) -> None:
    with pytest.raises(ConfigError, match="a seed is a URL"):
        Seeds(seed)  # type: ignore[arg-type]


def test_entries_of_an_iterable_are_counted_like_lines() -> None:
    seeds = Seeds(["http://a/", "shop.example", Request("nope"), 5, "http://b/"])  # type: ignore[list-item]
    assert urls_of(seeds) == ["http://a/", "http://b/"]
    assert seeds.invalid == 3
    assert [reason.split(":")[0] for reason in seeds.reasons] == ["seed 2", "seed 3", "seed 4"]


def test_a_request_that_frames_its_own_message_is_refused() -> None:
    bad = Request("http://a/", headers={"content-length": "5"})
    line = "the request for http://a/ cannot be sent: header 'content-length' must not be given"
    with pytest.raises(ConfigError, match=line):
        Seeds(bad)
    seeds = Seeds([bad, "http://b/"])
    assert (urls_of(seeds), seeds.invalid) == (["http://b/"], 1)
    assert seeds.reasons[0].startswith(f"seed 1: {line}")


def test_a_line_for_an_unknown_label_is_refused_alone_and_named(tmp_path: Path) -> None:
    path = a_file(
        tmp_path,
        b'http://a/\n{"url": "http://b/", "label": "thing"}\n{"url": "http://c/", "label": "thng"}\nhttp://d/\n',
    )
    seeds = Seeds(path, [Request("http://e/", label="x"), "http://f/"], labels=("default", "thing"))
    assert urls_of(seeds) == ["http://a/", "http://b/", "http://d/", "http://f/"]
    assert seeds.invalid == 2
    assert seeds.reasons == (
        f"{path}:3: no handler for the label 'thng'; there are: default, thing",
        "seed 1: no handler for the label 'x'; there are: default, thing",
    )
    seeds = Seeds(path, labels=("thing",))
    assert urls_of(seeds) == ["http://b/"]
    assert seeds.reasons[0] == f"{path}:1: no handler without a label; there are: thing"


def test_a_direct_seed_for_an_unknown_label_is_left_to_the_router() -> None:
    request = Request("http://a/", label="x")
    assert list(Seeds(request, labels=("thing",))) == [[request]]


def test_a_generator_is_read_a_batch_at_a_time() -> None:
    taken = 0

    def generate() -> Iterator[str]:
        nonlocal taken
        for taken in range(10 * BATCH):
            yield f"http://a/{taken}"

    batches = iter(Seeds(generate()))
    next(batches)
    assert taken < 2 * BATCH


class TwoBatches:
    """A source that somebody else wrote."""

    invalid = 0
    reasons: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[list[Request]]:
        yield [Request("http://a/"), Request("http://b/", label="x")]
        self.invalid, self.reasons = 1, ("page 2: no URL",)
        yield [Request("http://c/", label="x")]


def test_a_source_gives_its_batches_and_its_refusals() -> None:
    seeds = Seeds(TwoBatches(), ["nope"])
    assert [len(batch) for batch in seeds] == [2, 1]
    assert seeds.invalid == 2
    assert [reason.split(":")[0] for reason in seeds.reasons] == ["page 2", "seed 1"]


def test_a_source_loses_its_requests_with_an_unknown_label_and_no_others() -> None:
    seeds = Seeds(TwoBatches(), labels=("default",))
    assert [[request.url for request in batch] for batch in seeds] == [["http://a/"]]
    assert seeds.invalid == 3
    assert seeds.reasons == (
        "page 2: no URL",
        "http://b/: no handler for the label 'x'; there are: default",
        "http://c/: no handler for the label 'x'; there are: default",
    )

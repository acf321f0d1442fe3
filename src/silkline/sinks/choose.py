"""From the names of outputs to sinks, and from sinks to what `Frontier.commit` is given."""

from __future__ import annotations

import importlib
import importlib.util
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from silkline.errors import ConfigError
from silkline.files import file_of, is_address, is_archive, is_folder, is_slip, shown_output, split_ending
from silkline.outcome import Outcome
from silkline.protocols import Deliver, KeyedSink, Output, PageSink, Positions, Sink, TypedSink
from silkline.sinks.address import OBJECTS, files_in, is_in_bucket
from silkline.sinks.csv import CsvSink
from silkline.sinks.failing import blamed
from silkline.sinks.folder import folder_sink
from silkline.sinks.format import PLAIN, Format
from silkline.sinks.frames import Gzip, Zstd
from silkline.sinks.jsonl import JsonLinesSink
from silkline.sinks.outputfile import foreign, foreign_spool, name_of, remove, starting, temporary, told
from silkline.sinks.packed import PackedLinesSink
from silkline.sinks.parquet import ParquetSink
from silkline.sinks.spool import spool_of
from silkline.sinks.sqlite import SqliteSink, holds_only_items

if TYPE_CHECKING:
    from silkline.sinks.objects import ObjectsSink

TWICE = "is named twice"

KINDS: dict[str, Callable[[str, Format], Sink]] = {
    ".jsonl": lambda path, _: JsonLinesSink(path),
    ".ndjson": lambda path, _: JsonLinesSink(path),
    ".jsonl.gz": lambda path, _: PackedLinesSink(path, Gzip()),
    ".ndjson.gz": lambda path, _: PackedLinesSink(path, Gzip()),
    ".jsonl.zst": lambda path, _: PackedLinesSink(path, Zstd()),
    ".ndjson.zst": lambda path, _: PackedLinesSink(path, Zstd()),
    ".csv": lambda path, format: CsvSink(path, format.columns, excel=format.excel),
    ".tsv": lambda path, format: CsvSink(path, format.columns, delimiter="\t", excel=format.excel),
    ".parquet": lambda path, format: _parquet_sink(path, format),
    ".db": lambda path, _: SqliteSink(path),
    ".sqlite": lambda path, _: SqliteSink(path),
    ".sqlite3": lambda path, _: SqliteSink(path),
}


ARCHIVES = (".warc", ".warc.gz")
"""Endings of outputs that keep pages, not items; see `files.is_archive`."""

SCHEMES: dict[str, tuple[str, str, str]] = {
    "clickhouse": ("clickhouse", "ClickHouseSink", "clickhouse"),
    "clickhouses": ("clickhouse", "ClickHouseSink", "clickhouse"),
    "mongodb": ("mongodb", "MongoSink", "mongodb"),
    "mongodb+srv": ("mongodb", "MongoSink", "mongodb"),
    "postgresql": ("postgresql", "PostgresqlSink", "postgresql"),
    "postgres": ("postgresql", "PostgresqlSink", "postgresql"),
    "mysql": ("mysql", "MysqlSink", "mysql"),
    "mariadb": ("mysql", "MysqlSink", "mysql"),
    "redis+stream": ("stream", "RedisStreamSink", "redis"),
    "rediss+stream": ("stream", "RedisStreamSink", "redis"),
}
"""Of outputs that are URLs: the module of the sink, its class, and the extra that has its driver. A class is
made as `kind(output, create=...)`."""


def output_for(path: str, format: Format = PLAIN) -> Output:
    """The sink for a file, by its ending, of items or of pages.

    Raises ConfigError for an ending that no format has, and a package that is missing.
    """
    _refuse_slip(path)
    if is_folder(path):
        return folder_sink(path)
    if not is_archive(path):
        return sink_for(path, format)
    try:
        from silkline.sinks.warc import WarcSink
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"output {path!r} needs the package {error.name}: pip install 'silkline[warc]'"
        ) from error
    return WarcSink(path)


def sink_for(path: str, format: Format = PLAIN) -> Sink:
    """The sink of items for a file, by its ending.

    Raises ConfigError for an ending that no format has.
    """
    ending = split_ending(path)[1].lower()
    _refuse_slip(path)
    if is_archive(path):
        raise ConfigError(f"output {path!r} is an archive of pages, and holds no items")
    make = KINDS.get(ending)
    if make is None and os.path.splitext(ending)[0] in KINDS:
        raise ConfigError(f"output {path!r}: only JSON lines can be compressed (.jsonl.gz, .jsonl.zst)")
    if make is None:
        raise ConfigError(
            f"output {path!r}: its ending names no format; known are {', '.join((*KINDS, *ARCHIVES))}; "
            "a folder ends with /"
        )
    return make(path, format)


def _refuse_slip(path: str) -> None:
    if is_slip(path):
        scheme = path.partition(":")[0]
        raise ConfigError(f"output {shown_output(path)!r}: write two slashes behind {scheme}: {scheme}://")


def _parquet_sink(path: str, format: Format) -> ParquetSink:
    """pyarrow is big: it is only imported when it is needed, but must be there from the start."""
    if importlib.util.find_spec("pyarrow") is None:
        raise ConfigError(f"output {path!r} needs the package pyarrow: pip install 'silkline[parquet]'")
    return ParquetSink(path, format.columns)


def sinks_for(
    paths: Iterable[str],
    format: Format = PLAIN,
    *,
    reserved: Iterable[str] = (),
    frontier: str | os.PathLike[str] | None = None,
) -> tuple[Output, ...]:
    """The sinks for several files; outputs that are databases are passed over.

    reserved: files that no output may be. frontier: its own file, in which only a table may be.

    Raises ConfigError for an unknown ending, a reserved file, and a file that is named twice.
    """
    paths = tuple(paths)
    own = [*reserved, *([frontier] if frontier is not None else [])]
    used = {os.path.realpath(path): "is the crawl's own file" for path in own}
    sinks: list[Output] = []
    for path in files_in(paths):
        sink = output_for(path, format)
        sinks.append(sink)
        real = os.path.realpath(file_of(path))
        shared = frontier is not None and isinstance(sink, SqliteSink) and sink.is_in(frontier)
        wrong = used.setdefault(real, "")
        if wrong and not (shared and wrong != TWICE):
            raise ConfigError(f"output {path!r} {wrong}: choose another name")
        used[real] = TWICE
    for output in filter(is_in_bucket, paths):
        sinks.append(objects_sink(output, format=format))
        if sinks[-1].name in {sink.name for sink in sinks[:-1]}:
            raise ConfigError(f"output {sinks[-1].name!r} is named twice: choose another name")
    return tuple(sinks)


def objects_sink(output: str, worker: str = "", format: Format = PLAIN) -> ObjectsSink:
    """The sink for objects in a bucket. worker: the one of several that writes it. Raises ConfigError."""
    try:
        from silkline.sinks.objects import ObjectsSink
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"output {shown_output(output)!r} needs the package {error.name}: pip install 'silkline[objects]'"
        ) from error
    return ObjectsSink(output, lambda path: sink_for(path, format), worker)


def keyed_sinks_for(outputs: Iterable[str], *, create: bool = True) -> tuple[KeyedSink, ...]:
    """The sinks for those outputs that are URLs, not open. create: whether they may create tables and
    columns.

    Raises ConfigError for a scheme that no sink has, a package that is missing, and a table that is named
    twice.
    """
    sinks: dict[str, KeyedSink] = {}
    for output in outputs:
        if not is_address(output) or is_in_bucket(output):
            continue
        sink = keyed_sink_for(output, create=create)
        if sink.name in sinks:
            raise ConfigError(f"output {sink.name!r} is named twice: choose another table")
        sinks[sink.name] = sink
    return tuple(sinks.values())


def keyed_sink_for(output: str, *, create: bool = True) -> KeyedSink:
    """The sink for a URL, by its scheme. Raises ConfigError."""
    scheme = output.partition("://")[0].lower()
    found = SCHEMES.get(scheme)
    if found is None:
        raise ConfigError(
            f"output {shown_output(output)!r}: no output has the scheme {scheme}://; known are "
            f"{', '.join((*SCHEMES, *sorted(OBJECTS)))}"
        )
    module, name, extra = found
    try:
        kind = getattr(importlib.import_module(f"silkline.sinks.{module}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("silkline"):
            raise
        raise ConfigError(
            f"output {shown_output(output)!r} needs the package {error.name}: pip install 'silkline[{extra}]'"
        ) from error
    sink: KeyedSink = kind(output, create=create)
    return sink


def called(outputs: Iterable[str], sinks: Iterable[Output | KeyedSink] = ()) -> dict[str, str]:
    """What outputs of items are called in a crawl, to their names: as they were given, as they are shown, as
    the sink has it; a URL without its table, too, where that names one only. Raises ConfigError."""
    names = {sink.name: sink.name for sink in sinks if not isinstance(sink, PageSink)}
    short: dict[str, set[str]] = {}
    for output in outputs:
        if is_in_bucket(output):
            name = objects_sink(output).name
        elif is_archive(output):
            continue
        else:
            name = keyed_sink_for(output).name if is_address(output) else name_of(output)
        shown = shown_output(output)
        names |= {output: name, shown: name}
        if is_address(output):
            names[name] = name
            short.setdefault(shown.partition("?")[0], set()).add(name)
    for shown, found in short.items():
        if len(found) == 1:
            names.setdefault(shown, *found)
    return names


def refuse_foreign(paths: Iterable[str], owned: frozenset[str] | None) -> None:
    """Raise ConfigError at the first output that `--fresh` must not remove: it may be anybody's.

    owned: names of the sinks that the job has a committed position for; None for a job that keeps no
        record, whose text files are taken for its own.

    A file that is missing or empty is nobody's. A database must hold no table but silkline's, whoever
    wrote it.
    """
    with starting():
        for path in map(file_of, files_in(paths)):
            real = os.path.realpath(path)
            if has_spool(path) and os.path.exists(spool_of(real)) and not _is_owned(path, owned):
                raise ConfigError(foreign_spool(spool_of(path)))
            with told(path):
                if not os.path.exists(real):
                    continue
                found = os.stat(real)
            if not stat.S_ISREG(found.st_mode):
                raise ConfigError(
                    f"{path} is not a regular file and will not be removed: choose another output"
                )
            if found.st_size and not _is_owned(path, owned):
                raise ConfigError(foreign(path))
            if found.st_size and isinstance(output_for(path), SqliteSink):
                only_items = holds_only_items(real, path)
                if only_items is False or (only_items is None and owned is None):
                    raise ConfigError(
                        f"{path} holds something else than items and will not be removed: "
                        "choose another name, or remove it"
                    )


def discard_owned(paths: Iterable[str], owned: frozenset[str] | None) -> None:
    """Remove the outputs that are the job's own, after a check that no output is anybody else's.

    Raises ConfigError as `refuse_foreign` does; then nothing is removed.
    """
    outputs = tuple(paths)
    paths = tuple(map(file_of, files_in(outputs)))
    refuse_foreign(paths, owned)
    for path in paths:
        if _is_owned(path, owned):
            discard(path)
    for output in filter(is_in_bucket, outputs):
        sink = objects_sink(output)
        if owned is None or sink.name in owned:
            from silkline.sinks.objects import discard_objects

            with starting():
                discard_objects(output)


def _is_owned(path: str, owned: frozenset[str] | None) -> bool:
    return owned is None or name_of(path) in owned


def discard(path: str) -> None:
    """Remove an output, with what its format keeps beside it. Nothing happens where there is none.

    Raises ConfigError where it is not a regular file or cannot be removed.
    """
    real = os.path.realpath(path)
    with starting(), told(path):
        if os.path.exists(real) and not stat.S_ISREG(os.stat(real).st_mode):
            raise ConfigError(f"{path} is not a regular file and will not be removed: choose another output")
        for victim in (*(real + suffix for suffix in ("-wal", "-shm", "-journal")), temporary(real), real):
            remove(victim)
        if has_spool(path):
            remove(spool_of(real))


def wants_types(sink: Sink) -> bool:
    """Whether the sink's `encode` is to get values with the types that the item has."""
    return isinstance(sink, TypedSink) and sink.typed


def has_spool(path: str) -> bool:
    """Whether the format of this output keeps its items in a spool first."""
    return split_ending(path)[1].lower() == ".parquet"


def deliver_to(sinks: Sequence[Output]) -> Deliver:
    """Deliver the items of the outcomes to every sink that is to have them."""

    def deliver(outcomes: Sequence[Outcome], positions: Positions) -> Positions:
        items = [item for outcome in outcomes for item in outcome.items]
        if not items:
            return positions
        delivered = dict(positions)
        for sink in sinks:
            own = [item for item in items if sink.name in item.data]
            if not own:
                continue
            with blamed(sink.name, "write"):
                position = sink.write(own, positions.get(sink.name))
            if position is not None:
                delivered[sink.name] = position
        return delivered

    return deliver


def finish_all(sinks: Sequence[Output]) -> Deliver:
    """Let every sink give its output the last touches; also in between, if need be."""

    def finish(outcomes: Sequence[Outcome], positions: Positions) -> Positions:
        finished = dict(positions)
        for sink in sinks:
            with blamed(sink.name, "finish"):
                position = sink.finish(positions.get(sink.name))
            if position is not None:
                finished[sink.name] = position
        return finished

    return finish

"""Does every layer read only what lies below it? Reads the imports of the sources, in Python and in Rust."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "latpcap"
RUST = ROOT / "core" / "src"

ORDER = [
    "format",
    "errors",
    "files",
    "lazy",
    "_core",
    "vocabulary",
    "words.en",
    "words.zh",
    "words",
    "limits",
    "options",
    "html",
    "bars",
    "spill",
    "arrays",
    "tables",
    "presentation",
    "user_waits.lookups",
    "user_waits.connects",
    "user_waits.segments",
    "user_waits.stream_ends",
    "user_waits.slow_requests",
    "user_waits.servers",
    "user_waits.cause_totals",
    "user_waits.proxies",
    "user_waits.connection_attempts",
    "user_waits.services",
    "user_waits.waits",
    "user_waits.groups",
    "user_waits",
    "reading",
    "reading.unpack",
    "reading.text_formats.frames",
    "reading.text_formats.clock",
    "reading.text_formats.ends",
    "reading.text_formats.names",
    "reading.text_formats.icmp",
    "reading.text_formats.tcpdump",
    "reading.text_formats.columns",
    "reading.text_formats.fields",
    "reading.text_formats",
    "reading.timeouts",
    "reading.web",
    "reading.fsspec_files",
    "reading.locations",
    "reading.sources",
    "reading.keylog",
    "reading.timestamps",
    "reading.links.parts",
    "reading.links.wifi",
    "reading.links.juniper",
    "reading.links.wrapped",
    "reading.links",
    "reading.feed",
    "reading.same_traffic",
    "reading.drain",
    "reading.reread",
    "reading.pcapng_blocks",
    "reading.rereadable",
    "reading.processes",
    "reading.other_packets",
    "reading.masks",
    "reading.anonymise",
    "reading.slices",
    "reading.filters.grammar",
    "reading.filters.http",
    "reading.filters.tls",
    "reading.filters.conversations",
    "reading.filters.dissect",
    "reading.filters.heads",
    "reading.filters.reassembly",
    "reading.filters.dissected",
    "reading.filters.source",
    "reading.filters.fields",
    "reading.filters.values",
    "reading.filters.functions",
    "reading.filters.arithmetic",
    "reading.filters.evaluate",
    "reading.filters.limit",
    "reading.filters",
    "reading.info_column",
    "reading.follow",
    "exports.spans",
    "exports.otlp",
    "exports.perfetto",
    "exports.names",
    "exports",
    "statistics.layers",
    "statistics.conversations",
    "statistics.hierarchy",
    "statistics.expert",
    "statistics",
    "side_sources.source",
    "side_sources.processes",
    "side_sources.access_log",
    "side_sources.strace",
    "side_sources",
    "findings.schema",
    "findings.quality",
    "findings.socket_options",
    "findings.evidence",
    "findings.connections",
    "findings.lookups",
    "findings.openings",
    "findings.fixes",
    "findings.pushes",
    "findings.tables",
    "findings.unanswered",
    "findings.hung_streams",
    "findings.silence",
    "findings.sessions",
    "findings.queues",
    "findings.worker_pools",
    "findings.shared_locks",
    "findings.buffering_proxies",
    "findings.proxy_queues",
    "findings.transactions",
    "findings.round_trips",
    "findings.uploads",
    "findings.brokers",
    "findings.expect_continue",
    "findings.retries",
    "findings.transfers",
    "findings.latency",
    "findings.search",
    "findings.finders",
    "findings",
    "answers.traffic",
    "answers.types",
    "answers.capture_kind",
    "answers.headline",
    "answers.text",
    "answers.why",
    "answers",
    "schemas",
    "plot.figure",
    "plot.numbers",
    "plot.text",
    "plot.pen",
    "plot.display",
    "plot.flow.packet_rows",
    "plot.flow.wait_marks",
    "plot.flow.pagination",
    "plot.flow.layout",
    "plot.flow.drawing",
    "plot.flow.graph",
    "plot.flow",
    "plot.ticket",
    "plot.cause_patterns",
    "plot.latency",
    "plot.waterfall_rows",
    "plot.waterfall",
    "plot.timeline",
    "plot.throughput",
    "plot.evidence",
    "plot.timeseq_data",
    "plot.timeseq",
    "plot.delays",
    "plot.flow.lifelines",
    "plot",
    "page.parts",
    "page.pictures",
    "page.report",
    "page",
    "reports.report_text",
    "reports.probe_packets",
    "reports.ping_traceroute",
    "reports.wrk",
    "reports.curl",
    "reports.pgbench",
    "reports",
    "views",
    "views.groups",
    "views.latency",
    "views.har",
    "views.view",
    "views.recording",
    "views.answer_columns",
    "views.answer_view",
    "views.projection",
    "views.flows",
    "views.capture",
    "views.page_source",
    "joined.limits",
    "joined.codes",
    "joined.capture_point",
    "joined.match",
    "joined.clock",
    "joined.pairing",
    "joined.packet_fates",
    "joined.rewrites",
    "joined.exchanges",
    "joined.tables",
    "joined.shares",
    "joined.answer",
    "joined.flow_data",
    "joined.joined",
    "joined.chain",
    "joined.joining",
    "joined",
    "archive",
    "archive.model",
    "archive.output",
    "archive.lock",
    "archive.inputs",
    "archive.series",
    "archive.layout",
    "archive.packs",
    "archive.plan",
    "archive.rotation",
    "archive.checked",
    "archive.packfile",
    "archive.worker",
    "archive.progress",
    "archive.dataset",
    "archive.selection",
    "archive.sites",
    "archive.stored_findings",
    "archive.archive_view",
    "archive.results",
    "archive.report",
    "archive.run",
    "archive.comparison",
    "archive.public",
    "",  # the public names, latpcap/__init__.py
    "cli.options",
    "cli.colour",
    "cli.text",
    "cli.export",
    "cli.live",
    "cli.manual",
    "cli.opening",
    "cli.tables",
    "cli.statistics",
    "cli.packets",
    "cli.joining",
    "cli.plots",
    "cli.report",
    "cli.schema",
    "cli.flow",
    "cli.archive",
    "cli.answers",
    "cli.mcp",
    "cli.memory_limit",
    "cli.exit_codes",
    "cli.app",
    "cli",
    "__main__",
]
"""A module imports those above it in this list and none below: at its head, in a call, and for a type checker."""

NEVER = {"plot": {"reading", "findings"}}
"""What a room leaves alone though it may: pictures are made of tables."""


def python_modules() -> dict[str, Path]:
    found = {}
    for path in sorted([*PACKAGE.rglob("*.py"), PACKAGE / "_core.pyi"]):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = python_modules()


def imports(path: Path) -> Iterator[str]:
    """The modules of latpcap that a file imports, wherever in it: in a call and for a type checker too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import, line {node.lineno}"
            origin = node.module or ""
            for alias in node.names:
                whole = f"{origin}.{alias.name}"
                name = whole if whole.removeprefix("latpcap.") in MODULES else origin
                if name.split(".")[0] == "latpcap":
                    yield name.removeprefix("latpcap").lstrip(".")
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "latpcap":
                    yield alias.name.removeprefix("latpcap").lstrip(".")


def test_every_module_has_a_place_in_the_order() -> None:
    assert sorted(ORDER) == sorted(MODULES)


def test_rooms_lie_behind_each_other() -> None:
    rooms = [room for room, _ in groupby(module.partition(".")[0] for module in ORDER)]
    assert len(rooms) == len(set(rooms)), "the modules of a room stand together in ORDER"


@pytest.mark.parametrize("module", MODULES, ids=lambda name: name or "latpcap")
def test_python_layers_import_downwards(module: str) -> None:
    wrong = []
    for imported in imports(MODULES[module]):
        assert imported in ORDER, f"{module} imports latpcap.{imported}, which is not there"
        if ORDER.index(imported) >= ORDER.index(module) or imported.split(".")[0] in NEVER.get(
            module.split(".")[0], ()
        ):
            wrong.append(imported)
    assert not wrong, f"latpcap.{module} must not import {', '.join(wrong)}"


UNITS = {0.0, 1.0, 1e3, 1e6, 1e9}


def numbers(path: Path) -> Iterator[str]:
    """Where a file compares with a number, or weighs by one, that is no unit and no small count."""
    order = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Compare) and any(isinstance(op, order) for op in node.ops):
            parts = [
                part for side in (node.left, *node.comparators) for part in ast.walk(side) if isinstance(part, ast.expr)
            ]
        elif isinstance(node, ast.BinOp):
            parts = [node.left, node.right]
        for part in parts:
            value = getattr(part, "value", None) if isinstance(part, ast.Constant) else None
            counts = isinstance(node, ast.Compare) and isinstance(value, int) and value > 2
            if counts or (isinstance(value, float) and value not in UNITS):
                yield f"{path.name}:{part.lineno}: {ast.unparse(node)}"


BOUNDS = {"0 <= number < 2 ** 63", "2 <= ticks < 2 ** 31", "len(safe) <= 60"}
"""Ranges of integers, and letters of a line."""


def test_no_threshold_of_a_verdict_stands_in_python() -> None:
    files = [path for room in ("user_waits", "findings", "answers") for path in (PACKAGE / room).glob("*.py")]
    found = [line for path in files for line in numbers(path) if not any(line.endswith(bound) for bound in BOUNDS)]
    assert found == []


def test_every_limit_of_findings_is_used_and_every_one_used_is_there() -> None:
    from latpcap.limits import LIMITS

    files = [path for room in ("user_waits", "findings", "answers") for path in (PACKAGE / room).glob("*.py")]
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    literal = set(re.findall(r'LIMITS\["(\w+)"\]|"(\w+_confidence)"', text))
    named = {a or b for a, b in literal}
    patterns = [re.sub(r"\{[^}]*\}", r"\\w+", name) for name in re.findall(r'LIMITS\[f"([^"]+)"\]', text)]
    assert named <= set(LIMITS)
    unused = {name for name in set(LIMITS) - named if not any(re.fullmatch(p, name) for p in patterns)}
    assert unused == set()


RUST_FILES = sorted(p for p in RUST.rglob("*.rs") if "tests" not in p.relative_to(RUST).with_suffix("").parts)


def code(path: Path) -> str:
    """A Rust file without its comments and without its tests."""
    text = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
    return re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", text)[0]


def rust_order() -> list[str]:
    """The layers in the order of the list that stands at the head of lib.rs."""
    head = " ".join(re.findall(r"^//! ?(.*)", (RUST / "lib.rs").read_text(encoding="utf-8"), re.MULTILINE))
    return re.findall(r"`([\w:]+)`", head.partition("One layer per file")[2])


def layer_of(path: Path) -> str:
    """The layer that a Rust file belongs to: its folder's, or one of its own (`limits`)."""
    parts = path.relative_to(RUST).with_suffix("").parts
    inner = (name for name in rust_order() if "::" in name)
    return next((name for name in inner if parts[: name.count("::") + 1] == tuple(name.split("::"))), parts[0])


def names_in_crate(path: Path) -> set[str]:
    """The layers that a Rust file names, however it spells the road to them."""
    inner = [name for name in rust_order() if "::" in name]
    parts = path.relative_to(RUST).with_suffix("").parts
    depth = len(parts[:-1] if parts[-1] == "mod" else parts)
    road = rf"(?:\bcrate::|(?<!super::)(?<!\w){'super::' * depth}(?!super))"
    text = code(path)
    found = set(re.findall(rf"{road}({'|'.join([*inner, '[a-z_0-9A-Z]+'])})", text))
    for group in re.findall(rf"{road}\{{([^;]*)\}}\s*;", text):
        while (flat := re.sub(r"\{[^{}]*\}", "", group)) != group:
            group = flat
        found |= set(re.findall(r"(?:^|,)\s*(\w+)", group))
    return found


def test_lib_rs_lists_every_layer() -> None:
    declared = re.findall(r"^(?:pub )?mod (\w+);", code(RUST / "lib.rs"), re.MULTILINE)
    assert sorted(name for name in rust_order() if "::" not in name) == sorted(declared)


def test_the_architecture_names_every_room_and_none_that_is_gone() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w./-]+)`", page))
    rooms = {name for name in rust_order() if "::" not in name}
    rooms |= {name.partition(".")[0] for name in ORDER if name not in ("_core", "")}
    bare = {name.removesuffix(".rs").removesuffix("/") for name in named}
    assert rooms <= bare, f"rooms that the page does not name: {sorted(rooms - bare)}"
    paths = {name for name in named if re.search(r"/|\.(?:rs|py|pcap|toml)$", name)}
    homes = (ROOT, RUST, PACKAGE, ROOT / "docs")
    gone = {path for path in paths if not any((home / path).exists() for home in homes)}
    assert not gone, f"paths that are not there: {sorted(gone)}"
    assert len(page.splitlines()) <= 150


@pytest.mark.parametrize("path", RUST_FILES, ids=lambda path: path.relative_to(RUST).as_posix())
def test_rust_layers_read_upwards_in_the_list_of_lib_rs(path: Path) -> None:
    order = rust_order()
    layer = layer_of(path)
    if layer == "lib":
        return
    above = order[: order.index(layer)] if layer in order else []
    wrong = names_in_crate(path) & set(order) - set(above) - {layer}
    assert not wrong, f"{layer} stands before {', '.join(sorted(wrong))} in lib.rs and must not read it"


@pytest.mark.parametrize(
    ("what", "pattern", "home"),
    [
        ("arrow types", r"\barrow(?:_\w+)?::", ("table", "python.rs")),
        ("pyo3", r"\bpyo3\b", ("python.rs",)),
        ("a permission to index", r"allow\([^)]*clippy::indexing_slicing", ("cursor.rs",)),
    ],
    ids=["arrow", "pyo3", "indexing"],
)
def test_a_thing_is_named_in_its_own_place_only(what: str, pattern: str, home: tuple[str, ...]) -> None:
    naming = {p.relative_to(RUST).parts[0] for p in RUST_FILES if re.search(pattern, code(p))}
    assert naming, f"nobody names {what}: the pattern is out of date"
    assert naming <= set(home), f"{what}: only in {' and '.join(home)}"


JUDGING = ("judge", "observe", "evidence", "exchange", "stream", "lookup", "probe", "engine")
"""Rooms whose numbers decide a row or a verdict. The others have the numbers of formats and Wireshark's rules."""
NO_LIMIT = {
    "0.0",
    "1.0",
    "0.5",  # a median
    "0.05",  # percentiles that are only shown
    "0.95",
    "100",  # percent
    "1e6",  # ns in a ms
    "1_000_000_000",  # ns in a s
}
NO_VERDICT = {
    "facts/rules.rs": {"DEFAULT_REORDER_NS", "FAST_RETRANSMIT_NS"},  # Wireshark's own
    "frame/fragment.rs": {"TIMEOUT_NS"},  # how long the parts of a datagram are kept
    "engine/until.rs": {"LATE_NS"},  # how far beyond `end` is read
    "engine/end.rs": {"STREAMS_AT_ONCE"},  # streams that are handed over at once
    "exchange/tracker.rs": {"BIAS"},
    "exchange/flow_control.rs": {"INITIAL"},  # of HTTP/2
    "exchange/tracker/listener.rs": {"FIRST_ERROR"},  # of HTTP
    "stream/counts.rs": {"TIMESTAMP_BYTES"},  # of TCP
}
"""Constants that decide no verdict, by the file that has them."""
NUMBERED = {"worth.rs", "roles.rs", "service.rs", "status.rs", "lookup.rs"}
"""What grades were measured to be worth; ports and codes that are registered."""


@pytest.mark.parametrize(
    "path",
    [p for p in RUST_FILES if p.relative_to(RUST).with_suffix("").parts[0] in JUDGING],
    ids=lambda path: path.relative_to(RUST).as_posix(),
)
def test_limits_of_verdicts_stand_in_one_place(path: Path) -> None:
    """Times, shares and chances are in limits; other constants bound memory (usize) or are no numbers."""
    if layer_of(path) == "limits" or path.name in NUMBERED:
        return
    text = re.sub(r'"[^"]*"', "", code(path))
    free = NO_VERDICT.get(path.relative_to(RUST).as_posix(), set())
    constants = re.findall(r"\bconst (\w+): (?!usize)[\w:<>]+ = (?!0;|1 <<)[\d(][^;]*;", text)
    assert set(constants) <= free, f"limits outside limits.rs: {constants}"
    numbers = re.findall(r"(?<![\w.])(\d[\d_]*\.\d+|\d+e-?\d+|\d[\d_]*_\d{3}|\d{3,})(?![\w.])", text)
    sizes = re.findall(rf"\bconst (?:\w+: usize|(?:{'|'.join(free) or '-'}): \w+) = ([\d_]+)", text)
    kinds = re.findall(r"\((?:false|true), (\d+)\)", text)  # of ICMP, with the version
    assert set(numbers) <= {*NO_LIMIT, *sizes, *kinds}, f"numbers outside limits.rs: {numbers}"


def test_every_limit_is_asked_by_some_rule() -> None:
    home = RUST / "limits.rs"
    names = re.findall(r"^    ([A-Z_]+): \w+ =", home.read_text(encoding="utf-8"), re.MULTILINE)
    asked = "".join(code(path) for path in RUST_FILES if path != home)
    bands = code(home).partition("limits! {")[0]  # two limits make a band
    unused = [name for name in names if not re.search(rf"\b{name}\b", asked + bands)]
    assert 40 < len(names) <= 60 and unused == []


def test_no_other_room_holds_a_time() -> None:
    """A constant whose name ends in a unit of time is a limit, wherever it stands."""
    for path in RUST_FILES:
        if layer_of(path) != "limits":
            found = set(re.findall(r"\bconst (\w+_(?:NS|US|MS)): [iuf]\w+ =", code(path)))
            place = path.relative_to(RUST).as_posix()
            assert found <= NO_VERDICT.get(place, set()), f"{place}: {found}"


def test_clippy_denies_indexing_and_the_compiler_forbids_unsafe() -> None:
    manifest = (ROOT / "core" / "Cargo.toml").read_text(encoding="utf-8")
    assert re.search(r'^indexing_slicing = "deny"', manifest, re.MULTILINE)
    assert re.search(r'^unsafe_code = "forbid"', manifest, re.MULTILINE)

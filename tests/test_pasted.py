"""tcpdump's printed lines are read like a capture of headers, with the numbers of the capture that they came from."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import latpcap as lp

PASTED = Path(__file__).parent / "pasted"
SAMPLE = Path(__file__).parents[1] / "sample_pcaps" / "nginx-latency.pcap"
PROBES = SAMPLE.with_name("probes.pcap")
TOLD = [
    "src",
    "sport",
    "dst",
    "dport",
    "seq",
    "ack",
    "len",
    "flags",
    "window",
    "tsval",
    "tsecr",
    "mss",
    "wscale",
    "sack",
]
LINE = "1700000000.000001 IP 192.0.2.1.4000 > 192.0.2.2.80: "


def test_numbers_count_from_the_conversations_start() -> None:
    """As tcpdump prints them by default; the lines are those of four of the sample's streams."""
    sample = lp.read(SAMPLE).arrow("events").to_pandas()
    captured = sample[sample["stream"].isin(range(4, 8))]
    printed = lp.read(PASTED / "seconds.txt").arrow("events").to_pandas()
    told = ["time", "seq", "ack", "len", "flags", "window", "tsval", "tsecr", "mss", "wscale", "retransmission"]
    for column in told:
        assert printed[column].astype(str).tolist() == captured[column].astype(str).tolist(), column


def test_v_prints_two_lines_and_s_true_numbers() -> None:
    printed, captured = lp.read(PASTED / "verbose.txt"), lp.read(SAMPLE)
    lines = printed.headers.drop(columns="frame_len")  # they begin with IP
    assert lines.equals(captured.headers.head(60).drop(columns="frame_len"))
    for column in ("seq", "ack", "len", "acks_frame", "ack_rtt_ms"):
        mine, theirs = (one.events[column].head(60).astype(str).tolist() for one in (printed, captured))
        assert mine == theirs, column


def test_fields_with_the_column_info() -> None:
    """`tshark -T fields -e … -e _ws.col.Info -E header=y -E separator=, -E quote=d`: TCP's facts are in Info alone."""
    printed = lp.read(PASTED / "info.txt")
    assert printed.frames == 4, "one without addresses counts"
    names = ("frame", "src", "sport", "flags", "mss", "wscale", "tsval")
    assert [tuple(row[name] for name in names) for row in printed.arrow("events").to_pylist()] == [
        (2, "10.0.0.1", 48924, "SYN", 1460, 10, 41),
        (3, "10.0.0.2", 9000, "SYN, ACK", 1460, 10, 30),
        (4, "fd00::1", 4000, "RST", None, None, None),
    ]


def test_a_stall_is_found_in_pasted_lines() -> None:
    why = lp.read(PASTED / "seconds.txt").why()
    assert "wait for acknowledgements that the clients hold back" in why.headline
    assert why.grade == "proven"


def test_pings_and_probes_are_found_again() -> None:
    """A time of day without a date; echo requests are no TCP."""
    printed, captured = lp.read(PASTED / "clock.txt"), lp.read(PROBES)
    columns = ["kind", "seq", "sent_frame", "answer_frame", "rtt_ms"]
    assert printed.frames == captured.frames
    assert printed.probes[columns].equals(captured.probes[columns])


def test_text_without_ends_is_refused_with_the_way_out() -> None:
    text = b"12:00:00.000001 IP (tos 0x0, ttl 64)\n"
    with pytest.raises(lp.CaptureError, match="tcpdump -n -tt"):
        lp.read(text)


def test_names_have_addresses_and_services_ports() -> None:
    """The same name is the same host; a name that spells an address is that address."""
    text = (
        "12:00:00.000001 IP client.example.4000 > web.example.https: Flags [S], seq 1, win 512, length 0\n"
        "12:00:00.000002 IP web.example.https > client.example.4000: Flags [R.], seq 0, ack 2, win 0, length 0\n"
        "12:00:00.000003 IP ip-10-1-2-3.ec2.internal.4001 > localhost.domain: Flags [S], seq 1, win 512, length 0\n"
        "12:00:00.000004 IP6 ip6-localhost.4001 > six.example.ssh: Flags [S], seq 1, win 512, length 0\n"
    )
    rows = lp.read(text.encode()).arrow("events").to_pylist()
    assert (rows[0]["src"], rows[0]["dport"]) == (rows[1]["dst"], 443)
    assert rows[0]["src"] != rows[0]["dst"]
    assert (rows[2]["src"], rows[2]["dst"], rows[2]["dport"]) == ("10.1.2.3", "127.0.0.1", 53)
    assert (rows[3]["src"], rows[3]["dport"]) == ("::1", 22)
    assert [row["stream"] for row in rows] == [0, 0, 1, 2]


def test_a_packet_that_is_not_told_keeps_its_number() -> None:
    """Frame n is the n-th packet, whatever is printed of it."""
    lines = [
        LINE + "Flags [S], seq 9, win 512, length 0",
        "1700000000.000002 STP 802.1d, Config, Flags [none], length 42",
        LINE + "Flags [R], seq 10, win 0, length 0",
    ]
    capture = lp.read("\n".join(lines).encode())
    assert capture.frames == 3
    assert list(capture.events["frame"]) == [1, 3]
    assert 2 in set(capture.issues["frame"])


def test_midnight_passes() -> None:
    text = (
        "23:59:59.900000 IP 192.0.2.1.4000 > 192.0.2.2.80: Flags [S], seq 9, win 512, length 0\n"
        "00:00:00.100000 IP 192.0.2.2.80 > 192.0.2.1.4000: Flags [R.], seq 0, ack 10, win 0, length 0\n"
    )
    assert lp.read(text.encode()).events["time_delta_ms"].iloc[1] == pytest.approx(200)


def test_sack_blocks_and_ipv6() -> None:
    """tcpdump counts the blocks of a SACK from the start of the conversation, too."""
    ends = "IP6 2001:db8::1.4000 > 2001:db8::2.80"
    back = "IP6 2001:db8::2.80 > 2001:db8::1.4000"
    text = (
        f"1.000001 {ends}: Flags [S], seq 1000, win 512, options [mss 1440,sackOK], length 0\n"
        f"1.000002 {back}: Flags [S.], seq 2000, ack 1001, win 512, options [mss 1440,sackOK], length 0\n"
        f"1.000003 {ends}: Flags [P.], seq 101:201, ack 1, win 512, length 100\n"
        f"1.000004 {back}: Flags [.], ack 1, win 512, options [nop,nop,sack 1 {{101:201}}], length 0\n"
    )
    events = lp.read(text.encode()).arrow("events").to_pylist()
    assert [row["seq"] for row in events] == [0, 0, 101, 1]
    assert events[3]["sack"] == [101, 201] or events[3]["sack"] == [{"left": 101, "right": 201}]


def _printed(capture: Path, *options: str) -> lp.Capture:
    tcpdump = shutil.which("tcpdump")
    if tcpdump is None:
        pytest.skip("tcpdump is not here")
    return lp.read(subprocess.run([tcpdump, "-r", capture, *options], capture_output=True, check=False).stdout)


@pytest.mark.parametrize(
    "options",
    [["-n"], ["-tt"], ["-ntttt", "-v"], ["-nttt"], ["-nttttt"], ["-nSK", "-vv"], ["-ne"], ["-n#"], ["-nXX"], ["-nx"]],
    ids=" ".join,
)
@pytest.mark.parametrize("capture", ["lost-tail", "path40-nagle"])
def test_rows_are_those_of_the_capture(capture: str, options: list[str]) -> None:
    """Whatever tcpdump is asked to print."""
    file = SAMPLE.parent / "more" / f"{capture}.pcap"
    events, printed = lp.read(file).arrow("events"), _printed(file, *options).arrow("events")
    for column in TOLD:
        assert printed[column].to_pylist() == events[column].to_pylist(), column


def test_a_lookup_is_read_with_its_answer() -> None:
    """tcpdump's answer does not repeat the question."""
    text = (
        "12:45:11.418264 IP 192.0.2.87.55126 > 192.0.2.1.53: 31077+ [1au] A? www.example.com. (44)\n"
        "12:45:16.418264 IP 192.0.2.87.55126 > 192.0.2.1.53: 31077+ [1au] A? www.example.com. (44)\n"
        "12:45:16.435864 IP 192.0.2.1.53 > 192.0.2.87.55126: 31077 2/0/1 CNAME web.example.com., A 198.51.100.7 (81)\n"
        "12:45:16.500000 IP 192.0.2.87.55127 > 192.0.2.1.53: 31078+ AAAA? nowhere. (25)\n"
        "12:45:16.600000 IP 192.0.2.1.53 > 192.0.2.87.55127: 31078 NXDomain* 0/1/0 (98)\n"
    )
    found, missing = lp.read(text.encode()).lookups.to_dict("records")
    assert (found["target"], found["repeats"], found["status_text"]) == ("www.example.com", 1, "NOERROR")
    assert list(found["addresses"]) == ["198.51.100.7"]
    assert found["latency_ms"] == pytest.approx(5017.6)
    assert (missing["target"], missing["method"], missing["status_text"]) == ("nowhere", "AAAA", "NXDOMAIN")


def test_an_icmp_error_quotes_the_packet_that_it_answers() -> None:
    """As the text prints it, else the last one of the text that went the same way."""
    text = (
        "1.000001 IP 192.0.2.1.4000 > 192.0.2.9.80: Flags [S], seq 9, win 512, length 0\n"
        "1.000002 IP 192.0.2.254 > 192.0.2.1: ICMP host 192.0.2.9 unreachable - admin prohibited, length 36\n"
        "2.000001 IP 192.0.2.1.4001 > 192.0.2.8.80: Flags [S], seq 9, win 512, length 0\n"
        "2.000002 IP (tos 0x0, ttl 64, id 1, offset 0, flags [none], proto ICMP (1), length 56)\n"
        "    192.0.2.254 > 192.0.2.1: ICMP time exceeded in-transit, length 36\n"
        "\tIP (tos 0x0, ttl 1, id 1, offset 0, flags [DF], proto TCP (6), length 40)\n"
        "    192.0.2.1.4001 > 192.0.2.8.80: Flags [S], seq 9, win 512, length 0\n"
    )
    probes = lp.read(text.encode()).probes
    assert list(probes["answer_frame"]) == [2, 4]
    assert set(probes["answer_from"]) == {"192.0.2.254"}


def test_the_inside_of_a_tunnel_is_read() -> None:
    inside = "IP 10.0.0.1.4000 > 10.0.0.2.80: Flags [S], seq 9, win 512, length 0"
    text = (
        f"1.000001 IP 192.0.2.1.31444 > 192.0.2.2.4789: VXLAN, flags [I] (0x08), vni 7\n{inside}\n"
        f"1.000002 IP 192.0.2.1 > 192.0.2.2: GREv0, length 44: {inside}\n"
        f"1.000003 IP6 2001:db8::1 > 2001:db8::2: {inside}\n"
        f"1.000004 IP 192.0.2.1.31444 > 192.0.2.2.6081: Geneve, Flags [none], vni 0x7: {inside}\n"
    )
    assert list(lp.read(text.encode()).events["src"]) == ["10.0.0.1"] * 4


def test_arp_and_vlans_are_ethernet() -> None:
    text = (
        "1.000001 ARP, Request who-has 192.0.2.2 tell 192.0.2.1, length 28\n"
        "1.000002 02:00:00:00:00:01 > 02:00:00:00:00:02, ethertype 802.1Q (0x8100), length 58: vlan 10, p 0, "
        "ethertype IPv4 (0x0800), 192.0.2.1.4000 > 192.0.2.2.80: Flags [S], seq 9, win 512, length 0\n"
    )
    capture = lp.read(text.encode())
    assert list(capture.events["frame"]) == [2]
    assert capture.issues.empty


def test_flags_of_tcpdump_3() -> None:
    """`S`, `.` and `P` without brackets, lengths in round ones."""
    text = (
        "12:00:00.000001 IP 192.0.2.1.4000 > 192.0.2.2.80: S 9:9(0) win 512 <mss 1460,nop,wscale 2> (DF)\n"
        "12:00:00.000002 IP 192.0.2.2.80 > 192.0.2.1.4000: S 7:7(0) ack 10 win 512 <mss 1460>\n"
        "12:00:00.000003 IP 192.0.2.1.4000 > 192.0.2.2.80: . ack 1 win 512\n"
        "12:00:00.000004 IP 192.0.2.1.4000 > 192.0.2.2.80: P 1:101(100) ack 1 win 512\n"
    )
    rows = lp.read(text.encode()).events
    assert list(rows["len"]) == [0, 0, 0, 100]
    assert list(rows["flags"]) == ["SYN", "SYN, ACK", "ACK", "PSH, ACK"]
    assert rows["mss"].iloc[0] == 1460


def _shown(capture: Path, *options: str) -> bytes:
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not here")
    return subprocess.run([tshark, "-n", "-r", capture, *options], capture_output=True, check=False).stdout


WHOLE = "frame.number frame.time_epoch ip.src tcp.srcport ip.dst tcp.dstport tcp.flags tcp.seq_raw tcp.ack_raw tcp.len"
OPTIONS = "tcp.window_size_value tcp.options ip.ttl ip.id"
EXPORTS = [
    ["-T", "json"],
    ["-T", "ek"],
    ["-T", "pdml"],
    ["-T", "json", "-x"],
    ["-V"],
    ["-T", "fields", "-E", "header=y", *(word for name in f"{WHOLE} {OPTIONS}".split() for word in ("-e", name))],
]


@pytest.mark.parametrize("options", EXPORTS, ids=lambda options: " ".join(options[:4]))
def test_exported_fields_are_those_of_the_capture(options: list[str]) -> None:
    file = SAMPLE.parent / "more" / "lost-tail.pcap"
    events, shown = lp.read(file).arrow("events"), lp.read(_shown(file, *options)).arrow("events")
    for column in TOLD:
        assert shown[column].to_pylist() == events[column].to_pylist(), column


@pytest.mark.parametrize("options", [[], ["-t", "ad"], ["-t", "d"], ["-t", "e"], ["-N", "nt"]], ids=" ".join)
def test_columns_have_the_numbers_of_the_capture(options: list[str]) -> None:
    """Rows of HTTP show neither ports nor sequence numbers: the rows around them do."""
    file = SAMPLE.parent / "more" / "lost-tail.pcap"
    events, shown = lp.read(file).arrow("events"), lp.read(_shown(file, *options)).arrow("events")
    for column in ("src", "sport", "dst", "dport", "seq", "ack", "len", "mss", "wscale", "retransmission"):
        assert shown[column].to_pylist() == events[column].to_pylist(), column


RACE = """\
    41 2025-03-04 08:00:00.000000  10.0.0.7   10.0.0.9   TCP   74  28811 → 3000 [SYN] Seq=0 Win=26883 Len=0 WS=256
    42 2025-03-04 08:00:00.000400  10.0.0.9   10.0.0.7   TCP   74  3000 → 28811 [SYN, ACK] Seq=0 Ack=1 Len=0 WS=128
    43 2025-03-04 08:00:00.000500  10.0.0.7   10.0.0.9   TCP   54  28811 → 3000 [ACK] Seq=1 Ack=1 Win=27136 Len=0
    44 2025-03-04 08:00:00.000600  10.0.0.7   10.0.0.9   HTTP  654  POST /api/items HTTP/1.1  (application/json)
    45 2025-03-04 08:00:00.001000  10.0.0.9   10.0.0.7   TCP   54  3000 → 28811 [ACK] Seq=1 Ack=601 Win=28160 Len=0
    46 2025-03-04 08:00:00.002000  10.0.0.9   10.0.0.7   HTTP  254  HTTP/1.1 200 OK
"""


def _cells(text: str) -> list[list[str]]:
    """The rows of a list by their columns."""
    found = [re.split(r" {2,}", row.strip(), maxsplit=5) for row in text.splitlines()]
    return [[*first.split(" ", 1), *rest] for first, *rest in found]


HEAD = '"No.","Time","Source","Destination","Protocol","Length","Info"'


@pytest.mark.parametrize(
    "text",
    [
        RACE,
        RACE.replace("→", "?"),
        "\n".join("\t".join(row) for row in _cells(RACE)),
        "\n".join([HEAD, *('"' + '","'.join(row) + '"' for row in _cells(RACE))]),
        "\n".join('"' + '","'.join(row) + '"' for row in _cells(RACE)),
    ],
    ids=["columns", "arrows lost", "tabs", "csv", "csv without a header"],
)
def test_rows_of_wireshark_without_ports_find_their_connection(text: str) -> None:
    """A copied list, whatever separates its columns."""
    capture = lp.read(text.encode())
    rows = capture.events
    assert list(rows["sport"]) == [28811, 3000, 28811, 28811, 3000, 3000]
    assert list(rows["seq"]) == [0, 0, 1, 1, 1, 1]
    assert list(rows["len"]) == [0, 0, 0, 600, 0, 200]
    assert list(rows["wscale"].dropna()) == [8, 7]
    first = capture.exchanges.iloc[0]
    assert (first["method"], first["target"], first["status"]) == ("POST", "/api/items", 200)


def test_rows_before_the_first_with_ports_belong_to_its_connection() -> None:
    text = (
        "877\t2025-05-13 09:27:38.204417\t11.630218\t10.0.0.1\t10.0.0.2\tTLSv1.2\t85\tEncrypted Alert\n"
        "878\t2025-05-13 09:27:38.204518\t11.630319\t10.0.0.1\t10.0.0.2\tTCP\t60\t"
        "443 → 63120 [FIN, ACK] Seq=4128 Ack=2781 Win=64128 Len=0\n"
    )
    rows = lp.read(text.encode()).arrow("events").to_pylist()
    assert [row["sport"] for row in rows] == [443, 443]
    assert [row["len"] for row in rows] == [31, 0]
    assert rows[1]["seq"] - rows[0]["seq"] == 31
    assert not any(row["retransmission"] or row["lost_segment"] for row in rows)


def test_a_lookup_of_wireshark_is_read() -> None:
    text = (
        "1 0.000000 10.0.0.1 → 10.0.0.53 DNS 75 Standard query 0x1a2b A www.example.com\n"
        "2 5.000000 10.0.0.1 → 10.0.0.53 DNS 75 Standard query 0x1a2b A www.example.com\n"
        "3 5.012000 10.0.0.53 → 10.0.0.1 DNS 91 Standard query response 0x1a2b A www.example.com A 192.0.2.7\n"
        "4 6.000000 10.0.0.1 → 10.0.0.53 DNS 74 Standard query 0x1a2c AAAA nowhere\n"
        "5 6.100000 10.0.0.53 → 10.0.0.1 DNS 149 Standard query response 0x1a2c No such name AAAA nowhere SOA a.b\n"
    )
    found, missing = lp.read(text.encode()).lookups.to_dict("records")
    assert (found["target"], found["repeats"], list(found["addresses"])) == ("www.example.com", 1, ["192.0.2.7"])
    assert missing["status_text"] == "NXDOMAIN"


FIRST = "1 0.000000 10.0.0.1 → 10.0.0.2 TCP 74 4000 → 80 [SYN] Seq=0 Win=512 Len=0 MSS=1460"
LINES = (
    "12:00:00.000001 IP 192.0.2.1.4000 > 192.0.2.2.80: Flags [S], seq 9, win 512, length 0\n"
    "12:00:01.000001 IP 192.0.2.1.4000 > 192.0.2.2.80: Flags [S], seq 9, win 512, length 0\n"
)


@pytest.mark.parametrize(
    "text",
    [
        re.sub("(?m)^", "> ", LINES),
        re.sub("(?m)^", "    ", LINES),
        re.sub("(?m)^", "Feb  1 10:00:00 web1 tcpdump[123]: ", LINES),
        re.sub("(?m)^", "[pod/web-1/tcpdump] ", LINES),
        LINES.replace(" IP", " eth0  In  IP"),
        LINES.replace("000001", "000"),
        f"This is all that I have:\n\n```\n{LINES}```\n",
        "\n".join(re.sub(r"\s*$", "", line) for line in LINES.split("\n")).replace("\n", "\r\n"),
    ],
    ids=["quoted", "indented", "syslog", "kubectl", "any", "milliseconds", "fenced", "crlf"],
)
def test_what_mails_and_logs_put_around_lines_is_passed_over(text: str) -> None:
    capture = lp.read(text.encode())
    assert list(capture.events["retransmission"]) == [False, True]
    assert capture.seconds == pytest.approx(1)


def test_text_in_utf_16_is_read() -> None:
    """PowerShell's redirection writes it."""
    assert len(lp.read(LINES.encode("utf-16")).events) == 2
    assert len(lp.read(f"{FIRST}\n".encode("utf-16")).events) == 1


def test_text_without_times_is_refused() -> None:
    with pytest.raises(lp.CaptureError, match="without times"):
        lp.read(re.sub(r"(?m)^\S+ ", "", LINES).encode())


def test_rows_without_a_column_for_the_length_take_it_from_the_rows_behind() -> None:
    text = re.sub(r"(TCP|HTTP) +\d+ ", r"\1 ", RACE)
    rows = lp.read(text.encode()).events
    assert list(rows["len"])[:5] == [0, 0, 0, 600, 0]
    assert rows["len"].iloc[5] > 0


@given(st.lists(st.text(alphabet='0123456789.:>[]=,\t→ ACKSYNTCPHTTPseqLenWin"{}<', max_size=90), max_size=8))
def test_no_columns_escape_as_anything_but_a_capture_error(rests: list[str]) -> None:
    rows = [f"{n} 0.00{n} 10.0.0.1 → 10.0.0.2 TCP 66 {rest}" for n, rest in enumerate(rests)]
    with contextlib.suppress(lp.CaptureError):
        lp.read("\n".join(rows).encode() or b"1")


@given(st.lists(st.text(alphabet="0123456789.:>[]{}(), FSRP-seqackwinlengthTSvalecr", max_size=90), max_size=8))
def test_no_text_escapes_as_anything_but_a_capture_error(rests: list[str]) -> None:
    text = "\n".join(LINE + rest for rest in rests).encode() or b"1"
    with contextlib.suppress(lp.CaptureError):
        assert lp.read(text).frames <= len(rests)


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda number, line: f"{number}:{line}",
        lambda number, line: f"web-tcpdump-1  | {line}",
        lambda number, line: ("<pre>" if number == 1 else "") + line.replace(">", "&gt;"),
    ],
    ids=["grep -n", "docker compose logs", "a page's source"],
)
def test_what_tools_and_pages_put_around_a_line_is_taken_off(
    tmp_path: Path, wrapped: Callable[[int, str], str]
) -> None:
    plain = [line for line in (PASTED / "clock.txt").read_text().splitlines() if line]
    (tmp_path / "plain.txt").write_text("\n".join(plain))
    (tmp_path / "wrapped.txt").write_text("\n".join(wrapped(n, line) for n, line in enumerate(plain, 1)))
    one, other = (lp.read(tmp_path / f"{name}.txt").events for name in ("plain", "wrapped"))
    assert len(one) and one.equals(other)


def test_bytes_and_details_between_rows_are_passed_over(tmp_path: Path) -> None:
    """`tshark -P -x` and `tshark -P -V`."""
    rows = [line for line in (PASTED / "columns.txt").read_text().splitlines() if line.strip()]
    between = "\nFrame (74 bytes):\n0000  45 00 00 3c 1c 46 40 00 40 06 b1 e6 c0 a8 00 68   E..<.F@.@......h\n"
    between += "Internet Protocol Version 4, Src: 192.0.2.1, Dst: 192.0.2.2\n    0100 .... = Version: 4\n" * 4
    for name, joint in (("plain", "\n"), ("mixed", between)):
        (tmp_path / f"{name}.txt").write_text(joint.join(rows) + "\n")
    one, other = (lp.read(tmp_path / f"{name}.txt").events for name in ("plain", "mixed"))
    assert len(one) and one.equals(other)


ROWS_OF_DNS = """
    1   0.000000     10.0.0.1 → 10.0.0.2     TCP 66 40000 → 53 [SYN] Seq=0 Win=64240 Len=0 MSS=1460 WS=128
    2   0.000010     10.0.0.2 → 10.0.0.1     TCP 66 53 → 40000 [SYN, ACK] Seq=0 Ack=1 Win=64240 Len=0 MSS=1460 WS=128
    3   0.001010     10.0.0.1 → 10.0.0.2     TCP 54 40000 → 53 [ACK] Seq=1 Ack=1 Win=64256 Len=0
    4   0.010000     10.0.0.1 → 10.0.0.2     DNS 88 Standard query 0x0001 A w0.example.com
    5   0.050000     10.0.0.2 → 10.0.0.1     DNS 104 Standard query response 0x0001 A w0.example.com A 10.1.2.3
    6   0.060000     10.0.0.1 → 10.0.0.2     TCP 54 40000 → 53 [FIN, ACK] Seq=35 Ack=51 Win=64256 Len=0
    7   0.070000     10.0.0.1 → 10.0.0.2     DNS 76 Standard query 0x0002 A w1.example.com
    8   0.090000     10.0.0.2 → 10.0.0.1     DNS 92 Standard query response 0x0002 A w1.example.com A 10.1.2.4
"""


def test_dns_on_an_open_connection_is_over_tcp(tmp_path: Path) -> None:
    """The one behind the FIN is over UDP again."""
    (tmp_path / "dns.txt").write_text(ROWS_OF_DNS)
    capture = lp.read(tmp_path / "dns.txt")
    assert capture.exchanges["target"].tolist() == ["w0.example.com"]
    assert capture.exchanges["latency_ms"].tolist() == [40.0]
    assert capture.lookups["target"].tolist() == ["w0.example.com", "w1.example.com"]
    assert capture.lookups["stream"].notna().tolist() == [True, False]


def test_tcpdump_before_3_9_named_no_family(tmp_path: Path) -> None:
    lines = [
        "06:09:56.683051 192.0.2.1.48924 > 192.0.2.2.9000: S 100:100(0) win 64240",
        "06:09:56.683151 192.0.2.2.9000 > 192.0.2.1.48924: S 500:500(0) ack 101 win 65160",
        "06:09:56.683251 192.0.2.1.48924 > 192.0.2.2.9000: . ack 501 win 64240",
        "06:09:56.683351 192.0.2.1.48924 > 192.0.2.2.9000: P 101:141(40) ack 501 win 64240",
    ]
    (tmp_path / "old.txt").write_text("\n".join(lines))
    assert lp.read(tmp_path / "old.txt").events["len"].tolist() == [0, 0, 0, 40]

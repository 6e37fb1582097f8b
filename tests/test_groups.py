"""Requests that are one thing to the user: pipelines, transactions, statements in two steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from makepcap import Talk, pcap

import latpcap as lp

CASES = Path(__file__).with_name("cases")


def redis(*words: str) -> bytes:
    return f"*{len(words)}\r\n".encode() + b"".join(f"${len(w)}\r\n{w}\r\n".encode() for w in words)


def talk(*said: tuple[float, bytes | None, bytes]) -> lp.Capture:
    """A conversation of Redis: when, what the client sent (None: the server speaks), and what the server answered."""
    tape = Talk(server_leg=5.0, client_leg=0.01)
    tape.open()
    for at, client, server in said:
        if client is not None:
            tape.client(at, client)
        else:
            tape.server(at, server)
    return lp.read(pcap(tape.tape))


def test_a_transaction_is_one_row_with_the_time_of_its_client() -> None:
    cap = talk(
        (10, redis("GET", "a"), b""), (16, None, b"$1\r\n1\r\n"),
        (20, redis("MULTI"), b""), (26, None, b"+OK\r\n"),
        (30, redis("INCR", "a"), b""), (36, None, b"+QUEUED\r\n"),
        (50, redis("EXEC"), b""), (80, None, b"*1\r\n:2\r\n"),
        (90, redis("GET", "a"), b""), (96, None, b"$1\r\n2\r\n"),
    )  # fmt: skip
    (row,) = cap.groups.to_dict("records")
    assert (row["kind"], row["method"], row["target"], row["exchanges"]) == ("transaction", "MULTI EXEC", "a", 3)
    assert (row["duration_ms"], row["client_ms"], row["sent_ms"], row["held_ms"]) == (60.0, 18.0, 30.0, 0.0)
    assert row["complete"] and row["error"] is False
    assert list(cap.exchanges.set_index("exchange").loc[[row["first_exchange"], row["last_exchange"]], "method"]) == [
        "MULTI", "EXEC",
    ]  # fmt: skip


def test_a_transaction_without_its_end_is_not_complete() -> None:
    cap = talk(
        (20, redis("MULTI"), b""), (26, None, b"+OK\r\n"),
        (30, redis("LPUSH", "a"), b""), (36, None, b"-ERR wrong number of arguments\r\n"),
    )  # fmt: skip
    (row,) = cap.groups.to_dict("records")
    assert row["exchanges"] == 2 and not row["complete"] and row["error"] is True


def test_requests_that_leave_before_an_answer_are_one_pipeline() -> None:
    cap = talk(
        (10, redis("GET", "a") + redis("GET", "b"), b""), (12, redis("SET", "c", "1"), b""),
        (16, None, b"$1\r\n1\r\n"), (18, None, b"$1\r\n1\r\n+OK\r\n"),
        (30, redis("GET", "a"), b""), (36, None, b"$1\r\n1\r\n"),
        (40, redis("GET", "b"), b""), (46, None, b"$1\r\n1\r\n"),
    )  # fmt: skip
    (row,) = cap.groups.to_dict("records")
    assert (row["kind"], row["method"], row["target"], row["exchanges"]) == ("pipeline", "GET SET", "a, b, c", 3)
    assert (row["duration_ms"], row["sent_ms"], row["client_ms"]) == (8.0, 2.0, 0.0)


def test_a_statement_in_two_steps_has_what_the_client_s_kernel_held() -> None:
    cap = lp.read(CASES / "mysql_prepared" / "capture.pcap")
    groups = cap.groups
    assert set(groups["kind"]) == {"statement"} and set(groups["method"]) == {"SELECT"}
    held = groups[groups["held_ms"] > 30]
    assert len(held) and (held["held_ms"] < held["sent_ms"]).all()
    # the second step waited for the ACK of the first: what the table of causes has of it
    for row in held.itertuples():
        mine = cap.causes[cap.causes["exchange"].between(row.first_exchange, row.last_exchange)]
        stalled = mine[mine["cause"].isin(["nagle", "delayed_ack"])]["duration_ms"].sum()
        assert row.held_ms == pytest.approx(stalled, abs=0.01)


def test_requests_of_protocols_that_answer_in_any_order_are_no_group() -> None:
    assert not len(lp.read(CASES / "enip_reads" / "capture.pcap").groups)


def test_results_of_a_batch_have_the_groups_of_each_capture(tmp_path: Path) -> None:
    files = [CASES / name / "capture.pcap" for name in ("redis_pipelined", "enip_reads")]
    lp.batch(files, tmp_path / "results", quiet=True)
    groups = lp.open_results(tmp_path / "results").groups
    alone = lp.read(files[0]).groups
    assert groups["kind"].tolist() == alone["kind"].tolist() and groups["capture"].nunique() == 1


def test_a_subscription_is_a_row_with_what_came_for_it() -> None:
    message = b"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n"
    cap = talk(
        (10, redis("SUBSCRIBE", "news"), b""), (16, None, b"*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"),
        (510, None, message), (1510, None, message), (1760, None, message),
    )  # fmt: skip
    (row,) = cap.groups.to_dict("records")
    assert (row["kind"], row["method"], row["target"], row["exchanges"]) == ("subscription", "SUBSCRIBE", "news", 1)
    assert (row["pieces"], row["first_chunk_ms"], row["longest_gap_ms"]) == (3, 500.0, 1000.0)
    assert row["duration_ms"] >= 1750 and row["client_ms"] == 0.0
    (pair,) = cap.exchanges.to_dict("records")
    assert (pair["kind"], pair["latency_ms"]) == ("request", 6.0)


def test_a_subscription_for_which_nothing_came_is_a_request_alone() -> None:
    confirmed = b"*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"
    assert not len(talk((10, redis("SUBSCRIBE", "news"), b""), (16, None, confirmed)).groups)


def test_long_polls_in_a_row_are_a_loop() -> None:
    some = b"*2\r\n$1\r\nq\r\n$1\r\n1\r\n"
    cap = talk(
        (10, redis("BLPOP", "q", "0"), b""), (510, None, some),
        (511, redis("BLPOP", "q", "0"), b""), (2510, None, some),
        (2511, redis("GET", "q"), b""), (2516, None, b"$-1\r\n"),
        (2520, redis("BLPOP", "q", "0"), b""),
    )  # fmt: skip
    (row,) = cap.groups.to_dict("records")
    assert (row["kind"], row["method"], row["exchanges"]) == ("long_poll", "BLPOP", 3)
    assert (row["pieces"], row["first_chunk_ms"], row["longest_gap_ms"]) == (2, 500.0, 2000.0)
    assert not row["complete"]
    alone = talk((10, redis("BLPOP", "q", "0"), b""), (510, None, some))
    assert not len(alone.groups)


@pytest.mark.parametrize(
    ("case", "kind", "protocol"),
    [
        ("server_sent_events", "event_stream", "http"),
        ("kafka_fetches_that_wait", "long_poll", "kafka"),
        ("redis_pushes", "subscription", "redis"),
        ("nats_requests", "subscription", "nats"),
        ("mqtt_requests_and_pushes", "subscription", "mqtt"),
        ("stomp_receipts", "subscription", "stomp"),
    ],
)
def test_what_goes_on_is_a_group_in_any_protocol(case: str, kind: str, protocol: str) -> None:
    [path] = (CASES / case).glob("capture.*")
    groups = lp.read(path).groups
    mine = groups[groups["kind"] == kind]
    assert len(mine) and set(mine["protocol"]) == {protocol}
    assert (mine["pieces"] > 0).all() and (mine["first_chunk_ms"] > 0).all()

"""Long columns in a file: the same values, whatever their length, and in memory where there is no file."""

from __future__ import annotations

import errno
import gc
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

import latpcap as lp
from latpcap import arrays, spill
from latpcap.findings import evidence


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns are long early, so that a test need not be."""
    monkeypatch.setattr(spill, "MIN_FILE_BYTES", 64)
    monkeypatch.setattr(spill, "BLOCK", 16)


def in_file(values: Any) -> bool:
    """Does it lie over one of the mapped files?"""
    while isinstance(values, np.ndarray):
        if values.base is None:
            return False
        values = values.base
    return isinstance(values, memoryview) or values in spill._maps


def test_a_long_column_lies_in_a_file_and_keeps_its_values() -> None:
    values = np.arange(1000, dtype=np.int64)
    kept = spill.long_lived_copy(values)
    assert in_file(kept) and not in_file(spill.long_lived_copy(values[:4]))
    spill.release_memory()
    assert kept.tolist() == values.tolist()
    kept[3] = 7
    spill.release_memory()
    assert kept[3] == 7


def test_a_column_without_rows_has_its_type() -> None:
    """Numbers of no cause, less that of one exchange, are places: numpy makes no integers of int64 and uint64."""
    exchanges = pa.table({"exchange": pa.array([21], pa.uint64())})
    causes = pa.table({"exchange": pa.chunked_array([], pa.uint64())})
    ours, theirs = (arrays.numbers(of, "exchange") for of in (exchanges, causes))
    assert theirs.dtype == arrays.filled(causes, "exchange", 0).dtype == np.uint64
    assert spill.take(np.arange(1), spill.positions_of(ours, theirs)).tolist() == []


def test_its_file_goes_with_it() -> None:
    gc.collect()
    before, held = len(spill._maps), spill.zeros(1000, "int64")
    assert len(spill._maps) == before + 1
    del held
    gc.collect()
    assert len(spill._maps) == before


def full(*_: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_without_room_on_the_disk_it_lies_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    held = spill.zeros(1000, "int64")
    assert not in_file(held) and not held.any() and len(held) == 1000


@pytest.mark.parametrize("room", range(12))
def test_a_disk_that_fills_while_a_column_is_written_loses_nothing(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many writes have room, each of 40 bytes at most."""
    left, write = iter(range(room)), os.pwrite

    def some(file: int, values: Any, at: int) -> int:
        return write(file, values[:40], at) if next(left, None) is not None else full()

    monkeypatch.setattr(os, "pwrite", some)
    values = np.arange(100) % 9
    column = spill.Column("int64")
    column.skip(3)
    for at in range(0, 90, 4):
        column.add(values[at : at + 4])
    column.skip(2)
    column.add(values[92:])
    held = column.array()
    assert held.tolist() == [0, 0, 0, *values[:92].tolist(), 0, 0, *values[92:].tolist()]
    assert not in_file(held) and len(column.array()) == 0


def test_a_column_that_cannot_be_mapped_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "_mapped", full)
    assert spill.long_lived_copy(np.arange(1000)).tolist() == list(range(1000))


@pytest.mark.parametrize("count", [3, 400])
def test_a_column_grows_wider_and_its_zeros_take_no_room(count: int) -> None:
    """In memory, and in a file."""
    column = spill.Column("uint8")
    column.skip(count)
    assert column.is_zero
    column.add(np.full(count, 7))
    column.widen(np.dtype("uint32"))
    column.add(np.full(count, 1 << 20))
    column.skip(count)
    held = column.array()
    assert held.dtype == np.uint32 and held.tolist() == [0] * count + [7] * count + [1 << 20] * count + [0] * count
    assert in_file(held) == (count > 3) and column.count == 0
    column.skip(count)
    assert column.is_zero and column.array().tolist() == [0] * count


def test_what_is_nothing_is_shared_and_not_written_to() -> None:
    some, more = spill.shared_zeros(1000, "float64"), spill.shared_zeros(3000, "int64")
    assert not some.any() and not more.any() and len(more) == 3000
    for array in (some, more):
        with pytest.raises(ValueError, match="read-only"):
            array[3] = 1


def test_memory_of_files_is_given_back_when_it_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []

    class Held:
        size = spill.RESIDENT_BYTES

        def __len__(self) -> int:
            return self.size

        def madvise(self, how: int) -> None:
            given.append(how)

    monkeypatch.setattr(spill, "_maps", {Held(): None})
    monkeypatch.setattr(spill, "_before", [5 << 20])
    monkeypatch.setattr(spill, "_resident", lambda: resident)
    resident = (5 << 20) + spill.RESIDENT_BYTES
    spill.release_memory()
    assert not given
    resident += 1
    spill.release_memory()
    assert not given, "so much may lie there of what is mapped"
    Held.size += 1
    spill.release_memory()
    assert len(given) == 1


def test_rising_is_seen_across_parts() -> None:
    values = np.arange(100)
    assert spill.is_sorted(values) and spill.is_sorted(values[:0]) and spill.is_sorted(values // 3)
    for at in (1, 15, 16, 17, 99):
        wrong = values.copy()
        wrong[at] = -1
        assert not spill.is_sorted(wrong), at


@pytest.mark.parametrize("spread", [0, 3, 40, 500])
@pytest.mark.parametrize("count", [0, 1, 16, 17, 1000])
def test_order_is_that_of_a_stable_sort(count: int, spread: int) -> None:
    """Keys that rise nearly, and such as do not at all."""
    keys = np.arange(count) // 2 + np.random.default_rng(count).integers(0, spread + 1, count)
    order = spill.argsort_nearly_sorted(keys)
    assert order.tolist() == np.argsort(keys, kind="stable").tolist()
    assert spill.take(keys, order).tolist() == sorted(keys.tolist())


def test_order_puts_few_early_ones_that_come_last_before_all_others() -> None:
    keys = np.r_[np.arange(5, 1000) // 2, 0, 0, 3, 499]
    assert spill.argsort_nearly_sorted(keys).tolist() == np.argsort(keys, kind="stable").tolist()


def test_the_nth_is_that_of_all_sorted() -> None:
    random = np.random.default_rng(7)
    for values in (random.integers(0, 9, 2000), random.normal(size=2000), np.zeros(2000), np.arange(3)[::-1]):
        ordered, before = np.sort(values), values.copy()
        for place in {0, 1, len(values) // 2, len(values) - 1}:
            assert spill.nth_smallest(values, place) == ordered[place]
        assert values.tolist() == before.tolist()


def test_rows_are_marked_and_chosen_part_by_part() -> None:
    rows = np.random.default_rng(8).permutation(500)[:300].astype("uint32")
    marked = spill.row_mask(rows, 500)
    assert np.flatnonzero(marked).tolist() == sorted(rows.tolist())
    even = np.arange(500) % 2 == 0
    assert spill.selected(rows, even).tolist() == [row for row in rows.tolist() if row % 2 == 0]
    assert len(spill.selected(rows, ~marked)) == len(spill.selected(rows[:0], marked)) == 0


def test_what_is_ranked_in_pieces_is_in_the_order_of_a_stable_sort() -> None:
    random = np.random.default_rng(1)
    for values in (random.integers(0, 40, 5000), random.normal(size=5000), np.zeros(5000), np.arange(5000)):
        assert spill.argsort(values).tolist() == np.argsort(values, kind="stable").tolist()


def test_places_of_keys_in_any_order() -> None:
    random = np.random.default_rng(2)
    for keys in (np.arange(300), np.arange(7, 307), np.arange(300) * 2, random.permutation(300), np.arange(300) / 4):
        wanted = random.integers(0, 300, 1000)
        assert spill.positions_of(keys, keys[wanted]).tolist() == wanted.tolist()


def test_split_gives_the_places_of_each_key_and_none_of_negative_ones() -> None:
    keys = np.random.default_rng(3).integers(-1, 5, 1000)
    found = spill.positions_by_key(keys)
    assert {key: rows.tolist() for key, rows in found.items()} == {
        key: np.flatnonzero(keys == key).tolist() for key in range(5)
    }


def test_weights_are_added_up_by_code() -> None:
    codes, weights = np.arange(1000) % 7, np.arange(1000.0)
    rows = np.arange(0, 1000, 3)
    assert spill.sum_weights(codes, weights, 8).tolist() == np.bincount(codes, weights, 8).tolist()
    some = np.bincount(codes[rows], weights[rows], 8)
    assert spill.sum_weights(codes, weights, 8, rows).tolist() == some.tolist()


def test_columns_are_joined_one_behind_the_other() -> None:
    few, many = np.arange(4, dtype=np.uint8), np.arange(40)
    assert spill.concatenated([many, few]).tolist() == [*many, *few]
    assert spill.concatenated([few]) is few and len(spill.concatenated([])) == 0


def test_sums_of_keys_are_those_of_all_rows_whatever_the_part() -> None:
    random = np.random.default_rng(4)
    values = random.integers(0, 100, 1000)
    for keys in (np.sort(random.integers(0, 60, 1000)), random.integers(0, 60, 1000), np.zeros(1000, np.int64)):
        found, total = arrays.sums(keys, values)
        assert found.tolist() == arrays.distinct(keys).tolist() == sorted(set(keys.tolist()))
        assert total.tolist() == [int(values[keys == key].sum()) for key in found]


def rounded(value: Any) -> Any:
    """Sums in another order differ in their last bits."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return f"{value:.9g}" if isinstance(value, float) else value


@pytest.mark.parametrize("name", ["nginx-latency.pcap", "clips/split-nagle.pcap"])
def test_answers_are_the_same_in_however_many_parts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole answer, findings, one exchange and latencies: a part of 16 rows and one of all rows."""

    def told() -> list[object]:
        cap = lp.read(Path(__file__).resolve().parents[1] / "sample_pcaps" / name)
        one, table = cap.why(exchange="worst"), cap.findings
        return [cap.why(top=3).to_dict(), one.to_dict(), table.to_dict("records"), str(cap.latency(by="server"))]

    monkeypatch.setattr(spill, "BLOCK", 1 << 16)
    whole = told()
    monkeypatch.setattr(spill, "BLOCK", 16)
    for parts, of_all in zip(told(), whole, strict=True):
        assert rounded(parts) == rounded(of_all)


def test_the_client_that_lost_most_over_all_parts() -> None:
    """No single part has most of its time: 40 rows of 16 a part."""
    clients, of = ["10.0.0.1", "10.0.0.2", "10.0.0.3"], [n % 3 for n in range(40)]
    tables = {
        "streams": pa.table(
            {"stream": pa.array(range(3), pa.uint32()), "client": pa.array(clients).dictionary_encode()}
        ),
        "stretches": pa.table({"stream": pa.array(of, pa.uint32())}),
    }
    spent = np.array([(5.0, 6.0, 1.0)[n] for n in of])
    item = SimpleNamespace(rows=np.arange(40), ms=spent)
    named, share = evidence.hardest_client(cast(Any, item), tables)
    assert named == "10.0.0.2" and share == pytest.approx(13 * 6 / (14 * 5 + 13 * 6 + 13 * 1))
    none = SimpleNamespace(rows=np.arange(0), ms=np.zeros(0))
    assert evidence.hardest_client(cast(Any, none), tables) == (None, None)


def test_long_columns_of_arrow_with_nulls_and_truths() -> None:
    """Also where the first part has no null, and of a slice that begins within a byte of the bits."""
    given = [None if n > 40 and n % 7 == 0 else n for n in range(200)]
    table = pa.table(
        {
            "number": pa.array(given, pa.uint16()),
            "truth": pa.array([None if n is None else n % 3 == 0 for n in given]),
            "plain": pa.array([n % 3 == 0 for n in range(200)]),
            "word": pa.array([None if n is None else "ab"[n % 2] for n in given]).dictionary_encode(),
        }
    ).slice(3)
    seen, given = arrays.numbers(table, "number"), given[3:]
    assert [None if n != n else n for n in seen.tolist()] == given and seen.dtype == float
    assert arrays.filled(table, "number", 7).tolist() == [7 if n is None else n for n in given]
    assert arrays.filled(table, "truth", 0).astype(bool).tolist() == [n is not None and n % 3 == 0 for n in given]
    plain = arrays.numbers(table, "plain")
    assert plain.dtype == bool and plain.tolist() == [n % 3 == 0 for n in range(3, 200)]
    code, words = arrays.codes(table, "word")
    assert [None if c < 0 else words[c] for c in code.tolist()] == table["word"].to_pylist()


def test_bits_are_packed_part_by_part() -> None:
    truths = np.arange(100) % 3 > 0
    parts = [truths[span] for span in spill.parts(100)]
    assert np.array_equal(arrays.bits(parts), np.packbits(truths, bitorder="little"))
    assert arrays.bits([np.ones(16, bool), np.ones(3, bool)]) is None and arrays.bits([]) is None
    assert arrays.column(np.arange(100), arrays.bits(parts)).is_valid().to_pylist() == truths.tolist()


def test_codes_are_counted_by_row() -> None:
    codes, rows = (np.arange(1000) % 6 - 1).astype("int8"), np.arange(0, 1000, 7)
    assert spill.count_codes(codes, 6, rows).tolist() == [int((codes[rows] == code).sum()) for code in range(6)]
    assert spill.count_codes(codes, 6, rows[:0]).tolist() == [0] * 6


@pytest.mark.parametrize("count", [0, 1, 5, 1000, 70_000])
def test_rows_are_told_apart_by_their_keys(count: int) -> None:
    keys = np.random.default_rng(count).integers(0, 50, count)
    first, which, many = arrays.grouped(keys)
    known, at, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    assert np.array_equal(first, at) and np.array_equal(many, counts)
    assert np.array_equal(known[which], keys) and np.array_equal(which, inverse)


def test_a_longer_array_has_zeros_behind() -> None:
    for count in (0, 3, 200_000):
        values = np.arange(count) + 1
        found = spill.extended(values, 2 * count + 1)
        found[-1] = 7
        assert found[:count].tolist() == values.tolist() and not found[count:-1].any()

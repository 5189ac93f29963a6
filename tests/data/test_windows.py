"""Windows of a token stream: every token predicted once, states carried on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.windows import Windows
from seqloom.errors import ConfigError, DataError

# Tokens are 0, 1, 2, ... and what may stand before them is -1, so real rows always count upwards.
made = st.builds(
    lambda size, before, **options: Windows(np.arange(size), before=before, **options),
    size=st.integers(2, 80),
    before=st.sampled_from([None, -1]),
    batch_size=st.integers(1, 12),
    window=st.integers(1, 9),
    keep_rest=st.booleans(),
)


def rows(batch):
    """The real tokens of each lane."""
    ids = batch["ids"]
    return [row[:length].tolist() for row, length in zip(ids.values, ids.lengths, strict=True)]


@given(made)
def test_every_token_is_predicted_once(windows):
    batches = list(windows.batches())
    assert len(batches) == len(windows)
    targets = [token for batch in batches for row in rows(batch) for token in row[1:]]
    all_of_them = list(range(0 if windows.before == -1 else 1, len(windows.ids)))
    rest = len(all_of_them) % windows.lanes
    assert len(set(targets)) == len(targets)
    assert sorted(targets) in (all_of_them, all_of_them[: len(all_of_them) - rest])


@given(st.integers(2, 400), st.integers(1, 5), st.integers(1, 30), st.booleans(), st.integers(0, 9))
def test_windows_of_drawn_lengths_predict_every_token_once(size, lanes, window, keep_rest, seed):
    windows = Windows(
        np.arange(size), batch_size=lanes, window=window, keep_rest=keep_rest, spread=4.0, seed=seed
    )
    for epoch in range(3):
        batches = list(windows.batches(epoch=epoch))
        assert len(batches) == windows.steps(epoch)
        targets = sorted(token for batch in batches for row in rows(batch) for token in row[1:])
        assert targets == list(range(1, 1 + len(targets)))
        assert len(targets) >= size - lanes
        lengths = [batch["ids"].values.shape[1] - 1 for batch in batches]
        assert min(lengths[:-1], default=5) >= 5
        assert [bool(batch.values["begins"].all()) for batch in batches] == [
            step == 0 for step in range(len(batches))
        ]
        last = None
        for batch in batches:
            for lane, row in enumerate(rows(batch)):
                assert last is None or not row or row[0] == last[lane][-1]
            last = rows(batch)


def test_drawn_lengths_are_spread_around_the_window():
    windows = Windows(np.arange(700_000), batch_size=1, window=70, spread=5.0)
    lengths = np.diff(windows.edges(0))[:-1]
    usual, half = lengths[lengths > 52], lengths[lengths <= 52]
    assert len(half) / len(lengths) == pytest.approx(0.05, abs=0.01)
    assert np.mean(usual) == pytest.approx(69.5, abs=0.3)  # rounded down
    assert np.std(usual) == pytest.approx(5, abs=0.2)
    assert np.mean(half) == pytest.approx(34.5, abs=1)


def test_drawn_lengths_depend_on_seed_and_epoch_alone():
    def edges(seed, *epochs):
        windows = Windows(np.arange(900), batch_size=2, window=30, spread=5.0, seed=seed)
        return [windows.edges(epoch).tolist() for epoch in epochs]

    (first,), (again, other, same) = edges(3, 0), edges(3, 0, 1, 0)
    assert first == again == same != other
    assert edges(4, 0) != [first]
    windows = Windows(np.arange(900), batch_size=2, window=30, spread=5.0, seed=3)
    whole = [rows(batch) for batch in windows.batches(epoch=1)]
    assert [rows(batch) for batch in windows.batches(4, epoch=1)] == whole[4:]


def test_a_negative_spread_is_refused():
    with pytest.raises(ConfigError, match=r"spread must not be negative, got -1\.0"):
        Windows(np.arange(9), batch_size=1, window=3, spread=-1.0)


def test_the_rest_is_kept_or_dropped():
    for keep_rest, expected in ((True, 10), (False, 9)):
        windows = Windows(np.arange(11), batch_size=3, window=2, keep_rest=keep_rest)
        assert sum(int((b["ids"].lengths - 1).clip(0).sum()) for b in windows.batches()) == expected


@given(made)
def test_a_lane_goes_on_where_it_stopped(windows):
    last = None
    for batch in windows.batches():
        assert batch["ids"].values.shape[1] <= windows.window + 1
        assert len(batch) == windows.lanes
        for lane, row in enumerate(rows(batch)):
            assert not row or row == list(range(row[0], row[0] + len(row)))
            assert len(row) != 1  # a token alone predicts nothing
            if last is not None and row:
                assert row[0] == last[lane][-1]
        last = rows(batch)


@given(made)
def test_begins_is_true_in_the_first_batch_alone(windows):
    begins = [batch.values["begins"] for batch in windows.batches()]
    assert begins[0].all()
    assert not any(flags.any() for flags in begins[1:])


@given(made)
def test_resumed_at_any_step(windows):
    whole = [rows(batch) for batch in windows.batches()]
    for start in range(len(whole) + 1):
        resumed = list(windows.batches(start))
        assert [rows(batch) for batch in resumed] == whole[start:]
        assert all(b.values["begins"].any() == (start + i == 0) for i, b in enumerate(resumed))


@given(made, st.integers(1, 4))
def test_processes_share_the_lanes(windows, world_size):
    shares = [list(windows.batches(rank=r, world_size=world_size)) for r in range(world_size)]
    for step, whole in enumerate(windows.batches()):
        found = {}
        for share in shares:
            found |= dict(zip(share[step].index.tolist(), rows(share[step]), strict=True))
        assert [found[lane] for lane in range(windows.lanes)] == rows(whole)


def test_by_hand():
    # 7 tokens to predict in 3 lanes: 3 + 2 + 2 of them, two a step.
    windows = Windows(np.arange(10, 18), batch_size=3, window=2, keep_rest=True)
    first, second = windows.batches()
    assert first["ids"].values.tolist() == [[10, 11, 12], [13, 14, 15], [15, 16, 17]]
    assert second["ids"].values.tolist() == [[12, 13], [0, 0], [0, 0]]
    assert second["ids"].lengths.tolist() == [2, 0, 0]


def test_a_token_before_the_first_is_an_input_alone():
    windows = Windows(np.array([5, 6, 7]), batch_size=1, window=2, before=2, keep_rest=True)
    assert [rows(batch) for batch in windows.batches()] == [[[2, 5, 6]], [[6, 7]]]
    (batch,) = Windows(np.array([5]), batch_size=4, window=2, before=2).batches()
    assert rows(batch) == [[2, 5]]


def test_more_lanes_than_tokens():
    windows = Windows(np.arange(3), batch_size=99, window=5)
    (batch,) = windows.batches()
    assert batch["ids"].values.tolist() == [[0, 1], [1, 2]]


def test_padding_never_carries_a_value():
    windows = Windows(np.full(8, 99), batch_size=3, window=2, keep_rest=True)
    for batch in windows.batches():
        assert (batch["ids"].values[~batch["ids"].mask] == 0).all()


def test_a_memory_map_and_its_dtype(tmp_path):
    np.arange(9, dtype=np.uint16).tofile(tmp_path / "ids")
    mapped = np.memmap(tmp_path / "ids", np.uint16, mode="r")
    (batch,) = Windows(mapped, batch_size=2, window=4).batches()
    assert batch["ids"].values.dtype == np.uint16
    assert rows(batch) == [[0, 1, 2, 3, 4], [4, 5, 6, 7, 8]]


@pytest.mark.parametrize(("batch_size", "window"), [(0, 1), (1, 0), (-2, 3)])
def test_sizes_below_one_are_refused(batch_size, window):
    with pytest.raises(ConfigError, match=f"at least 1, got {batch_size} and {window}"):
        Windows(np.arange(9), batch_size=batch_size, window=window)


@pytest.mark.parametrize("size", [0, 1])
def test_too_few_tokens_are_refused(size):
    with pytest.raises(DataError, match=f"a token to predict, got {size} tokens"):
        Windows(np.arange(size), batch_size=1, window=1)

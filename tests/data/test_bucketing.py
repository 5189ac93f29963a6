"""Batches: every example once, an order that numbers alone decide, and little padding."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.data.batches import EncodedData
from seqloom.data.bucketing import BatchConfig, Bucketing, padding_waste, permuted
from seqloom.data.ragged import Ragged
from seqloom.errors import ConfigError

lengths = st.lists(st.integers(0, 9), min_size=1, max_size=60)
configs = st.builds(
    BatchConfig,
    batch_size=st.integers(1, 9),
    max_items=st.none() | st.integers(1, 40),
    max_waste=st.sampled_from([0, 0.04, 0.3, 1]),
    pool=st.integers(1, 4),
    shuffle=st.booleans(),
    seed=st.integers(0, 5),
)


def data_of(*fields):
    return EncodedData(
        {f"f{k}": Ragged.of([[1] * n for n in sizes]) for k, sizes in enumerate(fields)}
    )


def epoch_of(plan, epoch, start=0):
    return [batch.tolist() for batch in plan.indices(epoch, start)]


@given(lengths, configs, st.integers(0, 3))
def test_every_example_is_seen_exactly_once(sizes, config, epoch):
    plan = Bucketing(data_of(sizes), config)
    batches = epoch_of(plan, epoch)
    assert sorted(i for batch in batches for i in batch) == list(range(len(sizes)))
    assert all(batches)
    assert plan.num_batches(epoch) == len(batches)


@given(lengths, configs, st.integers(0, 3))
def test_batches_keep_their_limits(sizes, config, epoch):
    for batch in epoch_of(Bucketing(data_of(sizes), config), epoch):
        assert len(batch) <= config.batch_size
        items = len(batch) * max(sizes[i] for i in batch)
        assert config.max_items is None or items <= config.max_items or len(batch) == 1


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1), st.integers(1, 60))
def test_all_fields_together_keep_the_limit_of_items(sizes, limit):
    left, right = zip(*sizes, strict=True)
    plan = Bucketing(data_of(left, right), BatchConfig(batch_size=8, max_items=limit))
    for batch in epoch_of(plan, 0):
        items = len(batch) * (max(left[i] for i in batch) + max(right[i] for i in batch))
        assert items <= limit or len(batch) == 1


@given(lengths, configs)
def test_the_order_depends_on_seed_and_epoch_alone(sizes, config):
    one, two = (Bucketing(data_of(sizes), config) for _ in range(2))
    list(two.indices(7))  # what was asked before does not matter
    assert epoch_of(one, 2) == epoch_of(two, 2)


@given(lengths, configs, st.integers(0, 2))
def test_an_epoch_resumed_at_any_step_goes_on_as_it_would_have(sizes, config, epoch):
    plan = Bucketing(data_of(sizes), config)
    whole = epoch_of(plan, epoch)
    for start in range(len(whole) + 2):
        assert epoch_of(plan, epoch, start) == whole[start:]


def test_other_seeds_and_epochs_give_other_orders():
    data = data_of([3] * 100)
    orders = [
        epoch_of(Bucketing(data, BatchConfig(batch_size=4, seed=seed)), epoch)
        for seed in range(3)
        for epoch in range(3)
    ]
    flat = {tuple(i for batch in order for i in batch) for order in orders}
    assert len(flat) == 9
    # Not only the order of the batches: their members change too.
    assert len({frozenset(map(tuple, map(sorted, order))) for order in orders}) == 9


@given(lengths, st.integers(1, 9), st.none() | st.integers(1, 40))
def test_without_shuffling_examples_stay_in_order(sizes, batch_size, max_items):
    config = BatchConfig(batch_size=batch_size, max_items=max_items, shuffle=False, max_waste=1)
    for epoch in (0, 1):
        batches = epoch_of(Bucketing(data_of(sizes), config), epoch)
        assert [i for batch in batches for i in batch] == list(range(len(sizes)))
        if max_items is None:
            assert [*map(len, batches[:-1])] == [batch_size] * (len(batches) - 1)


@given(lengths, configs, st.integers(1, 5))
def test_all_processes_together_see_the_whole(sizes, config, world_size):
    data = data_of(sizes)
    plan = Bucketing(data, config)
    shares = [list(plan.batches(data, 1, rank=r, world_size=world_size)) for r in range(world_size)]
    whole = epoch_of(plan, 1)
    assert {len(share) for share in shares} == {len(whole)}
    for step, batch in enumerate(whole):
        parts = [share[step].index.tolist() for share in shares]
        assert sorted(i for part in parts for i in part) == sorted(batch)
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


@given(lengths, configs)
def test_batches_are_those_of_the_indices(sizes, config):
    data = data_of(sizes)
    plan = Bucketing(data, config)
    whole = epoch_of(plan, 0)
    assert [batch.index.tolist() for batch in plan.batches(data, 0)] == whole
    assert [batch.index.tolist() for batch in plan.batches(data, 0, 2)] == whole[2:]
    for batch in plan.batches(data, 0):
        assert batch["f0"].lengths.tolist() == [sizes[i] for i in batch.index]


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=80),
    st.sampled_from([0.0, 0.04, 0.2]),
    st.integers(1, 9),
)
def test_padding_stays_within_its_limit(sizes, max_waste, batch_size):
    data = data_of(*zip(*sizes, strict=True))
    config = BatchConfig(batch_size=batch_size, max_waste=max_waste, pool=3)
    assert padding_waste(Bucketing(data, config).batches(data, 0)) <= max_waste + 1e-9


def test_batches_of_one_length_are_not_split():
    plan = Bucketing(data_of([4] * 64), BatchConfig(batch_size=8, max_waste=0))
    assert [len(batch) for batch in epoch_of(plan, 0)] == [8] * 8


def test_long_and_short_come_mixed():
    sizes = np.random.default_rng(0).integers(1, 100, 4096).tolist()
    plan = Bucketing(data_of(sizes), BatchConfig(batch_size=32))
    means = [np.mean([sizes[i] for i in batch]) for batch in epoch_of(plan, 0)]
    steps = np.arange(len(means))
    assert abs(np.corrcoef(steps, means)[0, 1]) < 0.3


@pytest.mark.parametrize("start", [0, 5, 100])
def test_an_iterator_is_enough_to_stop_early(start):
    plan = Bucketing(data_of([1] * 1000), BatchConfig(batch_size=2, pool=3))
    assert len(list(islice(plan.indices(0, start), 4))) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"pool": -1}, "pool must be at least 1, got -1"),
        ({"max_items": 0}, "max_items must be at least 1, got 0"),
        ({"max_waste": 1.5}, r"max_waste must lie in \[0, 1\], got 1.5"),
        ({"seed": -3}, "seed must not be negative, got -3"),
    ],
)
def test_wrong_settings_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        BatchConfig(**options)


def test_no_example_is_refused():
    with pytest.raises(ConfigError, match="at least one example to batch, got none"):
        Bucketing(data_of([]))


# The permutation

EDGES = [1, 2, 3, *(2**k + d for k in range(2, 11) for d in (-1, 0, 1))]


@given(
    st.integers(1, 300) | st.sampled_from(EDGES),
    st.integers(0, 2**40),
    st.integers(0, 100),
)
@settings(max_examples=300)
def test_it_is_a_permutation(size, seed, epoch):
    found = permuted(np.arange(size), size, seed=seed, epoch=epoch)
    assert np.array_equal(np.sort(found), np.arange(size))
    part = np.arange(size // 3, size)
    assert np.array_equal(permuted(part, size, seed=seed, epoch=epoch), found[part])


def test_a_large_domain_needs_no_list():
    size = 10**12
    found = permuted(np.arange(1000, dtype=np.int64), size, seed=1, epoch=2)
    assert len(set(found.tolist())) == 1000
    assert found.min() >= 0 and found.max() < size
    assert found.max() > size // 2 > found.min()


def test_every_place_is_about_equally_likely():
    """Where 0 goes, over many seeds: chi-square with 6 degrees of freedom, 0.1% point 22.5."""
    size, trials = 7, 2000
    found = [int(permuted(np.arange(1), size, seed=seed, epoch=0)[0]) for seed in range(trials)]
    counts = np.bincount(found, minlength=size)
    assert ((counts - trials / size) ** 2 / (trials / size)).sum() < 22.5


@pytest.mark.parametrize("size", [1000, 4096, 50_000])
def test_the_order_looks_random(size):
    places = np.arange(size)
    found = permuted(places, size, seed=3, epoch=4)
    bound = 4 / np.sqrt(size)
    assert abs(np.corrcoef(places, found)[0, 1]) < bound
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < bound
    after = permuted(places, size, seed=3, epoch=5)
    assert abs(np.corrcoef(found, after)[0, 1]) < bound
    assert (found == after).sum() < 10

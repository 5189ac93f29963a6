"""Sequences end to end, padded batches, and the tensors made of them."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.batches import Batch, EncodedData, Padded
from seqloom.data.bucketing import padding_waste
from seqloom.data.ragged import Ragged
from seqloom.errors import BackendError, ConfigError, DataError, ShapeError

ids = st.lists(st.lists(st.integers(1, 2**31 - 1), max_size=6), min_size=1, max_size=8)


# Ragged


@given(ids)
def test_sequences_come_back(sequences):
    ragged = Ragged.of(sequences)
    assert len(ragged) == len(sequences)
    assert [row.tolist() for row in ragged] == sequences
    assert [ragged[i].tolist() for i in range(-len(sequences), 0)] == sequences
    assert ragged.lengths().tolist() == [*map(len, sequences)]
    assert ragged.flat.dtype == np.int32
    ragged.check()


@given(ids, st.data())
def test_padding_holds_the_fill_and_nothing_else(sequences, data):
    index = data.draw(st.lists(st.integers(0, len(sequences) - 1)))
    padded, lengths = Ragged.of(sequences).pad(index, fill=-7)
    longest = max((len(sequences[i]) for i in index), default=0)
    assert padded.shape == (len(index), longest)
    for row, length, i in zip(padded, lengths, index, strict=True):
        assert row[:length].tolist() == sequences[i]
        assert (row[length:] == -7).all()


def test_vectors_are_kept_as_float32():
    ragged = Ragged.of([np.arange(6.0).reshape(2, 3), np.zeros((0, 3)), [], [[7, 8, 9.5]]])
    assert ragged.flat.dtype == np.float32 and ragged.flat.shape == (3, 3)
    padded, lengths = ragged.pad([3, 0, 2])
    assert padded.shape == (3, 2, 3)
    assert padded[0].tolist() == [[7, 8, 9.5], [0, 0, 0]]
    assert lengths.tolist() == [1, 2, 0]


def test_no_sequence_and_empty_ones():
    assert len(Ragged.of([])) == 0
    assert Ragged.of([[], []]).lengths().tolist() == [0, 0]
    assert Ragged.of([[], [1]]).flat.dtype == np.int32
    padded, lengths = Ragged.of([[], []]).pad([0, 1])
    assert padded.shape == (2, 0) and lengths.tolist() == [0, 0]


def test_a_given_dtype_is_kept():
    assert Ragged.of([[2**40]], np.int64)[0].tolist() == [2**40]
    assert Ragged.of([[1, 2]], np.float64).flat.dtype == np.float64


@pytest.mark.parametrize("wrong", [2**31, 2**40, -(2**31) - 1])
def test_ids_that_do_not_fit_are_refused(wrong):
    with pytest.raises(ShapeError, match=f"32 bits, got {wrong}"):
        Ragged.of([[1], [wrong]])


def test_vectors_of_two_widths_are_refused():
    with pytest.raises(ShapeError, match=r"one width, got \[\(2,\), \(3,\)\]"):
        Ragged.of([np.zeros((1, 2)), np.zeros((1, 3))])


@pytest.mark.parametrize("offsets", [[], [1, 3], [0, 2], [0, 4], [[0, 3]]])
def test_offsets_that_do_not_span_the_items_are_refused(offsets):
    with pytest.raises(ShapeError, match=r"from 0 to the number of items 3, got"):
        Ragged(np.arange(3), np.array(offsets, np.int64))


def test_offsets_that_fall_are_found():
    with pytest.raises(DataError, match="must rise, got a fall at 1"):
        Ragged(np.arange(3), np.array([0, 2, 1, 3])).check()


@pytest.mark.parametrize("wrong", [-3, 2, 7])
def test_a_place_out_of_range_is_refused(wrong):
    ragged = Ragged.of([[1], [2, 3]])
    with pytest.raises(IndexError, match=f"sequence {wrong} of 2"):
        ragged[wrong]
    with pytest.raises(IndexError, match=rf"0\.\.1, got .*{wrong}"):
        ragged.pad([0, wrong])


def test_negative_places_are_refused_in_batches():
    with pytest.raises(IndexError, match=r"0\.\.1, got \[-1\]"):
        Ragged.of([[1], [2, 3]]).lengths([-1])


# Batches

N = 5


@pytest.fixture
def data():
    sequences = [[1, 2, 3], [4], [], [5, 6], [7, 8, 9, 10]]
    vectors = [np.full((n, 2), n + 0.5) for n in (1, 2, 3, 1, 2)]
    return EncodedData(
        {"ids": Ragged.of(sequences), "x": Ragged.of(vectors)},
        {"label": np.arange(N, dtype=np.uint8), "target": np.linspace(0, 1, 2 * N).reshape(N, 2)},
    )


def test_a_batch_holds_the_examples_asked_for_in_order(data):
    batch = data.batch([4, 1, 1])
    assert len(batch) == 3 and len(data) == N
    assert batch.index.tolist() == [4, 1, 1]
    assert batch["ids"].values.tolist() == [[7, 8, 9, 10], [4, 0, 0, 0], [4, 0, 0, 0]]
    assert batch["ids"].lengths.tolist() == [4, 1, 1]
    assert batch["x"].values.shape == (3, 2, 2)
    assert batch.values["label"].tolist() == [4, 1, 1]
    assert batch.values["target"].shape == (3, 2)


def test_the_mask_is_true_on_real_items_for_arrays_and_tensors(data):
    expected = [[True, True, True], [True, False, False], [False, False, False]]
    batch = data.batch([0, 1, 2])
    assert batch["ids"].mask.tolist() == expected
    assert batch.tensors()["ids"].mask.tolist() == expected
    assert batch["ids"].mask.dtype == bool and batch.tensors()["ids"].mask.dtype == torch.bool


def test_padding_never_carries_a_value():
    poison = Ragged.of([[99, 99, 99], [1], [99, 99]])  # the neighbours of [1] in memory
    vectors = Ragged.of([np.full((3, 2), np.nan), np.ones((1, 2)), np.full((2, 2), np.nan)])
    batch = EncodedData({"ids": poison, "x": vectors}).batch([1, 0])
    assert batch["ids"].values[0].tolist() == [1, 0, 0]
    assert batch["x"].values[0].tolist() == [[1, 1], [0, 0], [0, 0]]
    tensors = batch.tensors()
    assert torch.isfinite(tensors["x"].values[0]).all()
    assert not tensors["ids"].values[0][~tensors["ids"].mask[0]].any()


def test_tensors(data):
    batch = data.batch([0, 3])
    tensors = batch.tensors()
    for name in ("ids", "x"):
        assert torch.equal(tensors[name].values, torch.tensor(batch[name].values.tolist()))
        assert tensors[name].lengths.dtype == torch.int64
    assert tensors["ids"].values.dtype == torch.int64
    assert tensors["x"].values.dtype == torch.float32
    assert tensors.values["label"].dtype == torch.int64
    assert tensors.values["target"].dtype == torch.float64
    assert tensors.index is batch.index and len(tensors) == 2
    meta = batch.tensors("meta")
    assert meta["ids"].values.device.type == "meta"


def test_tensors_of_a_read_only_map_may_be_written(tmp_path, data):
    (tmp_path / "ids").write_bytes(np.arange(4, dtype=np.int32).tobytes())
    (tmp_path / "labels").write_bytes(np.arange(2, dtype=np.int64).tobytes())
    mapped = EncodedData(
        {"ids": Ragged(np.memmap(tmp_path / "ids", np.int32, mode="r"), np.array([0, 1, 4]))},
        {"label": np.memmap(tmp_path / "labels", np.int64, mode="r")},
    )
    tensors = mapped.batch([1, 0]).tensors()
    tensors["ids"].values.fill_(9)
    tensors.values["label"].fill_(9)
    assert mapped.batch([1])["ids"].values.tolist() == [[1, 2, 3]]
    assert mapped.values["label"].tolist() == [0, 1]


def test_tensors_without_torch(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(BackendError, match=r"pip install 'seqloom\[neural\]'"):
        data.batch([0]).tensors()


def test_an_empty_share_is_an_empty_batch(data):
    batch = data.batch([])
    assert len(batch) == 0
    assert batch["ids"].values.shape == (0, 0) and batch["x"].values.shape == (0, 0, 2)
    assert batch.tensors()["ids"].mask.shape == (0, 0)


def test_an_unknown_field_is_refused(data):
    with pytest.raises(ConfigError, match=r"sequence field 'idx'; did you mean 'ids'\?"):
        data.batch([0])["idx"]


def test_fields_of_different_sizes_are_refused():
    with pytest.raises(ShapeError, match=r"got \{'ids': 2, 'label': 3\}"):
        EncodedData({"ids": Ragged.of([[1], [2]])}, {"label": np.zeros(3)})
    with pytest.raises(ShapeError, match=r"got \{\}"):
        EncodedData({})


def test_lengths_of_every_field(data):
    assert data.lengths([0, 2]).tolist() == [[3, 1], [0, 3]]


def test_the_share_of_padding_by_hand():
    # 3 + 1 of 2 x 3 items, then 2 of 1 x 2 items: 6 real ones of 8.
    data = EncodedData({"ids": Ragged.of([[1, 1, 1], [1], [1, 1]])})
    batches = [data.batch([0, 1]), data.batch([2])]
    assert [(b.real_items, b.padded_items) for b in batches] == [(4, 6), (2, 2)]
    assert padding_waste(iter(batches)) == pytest.approx(2 / 8)
    assert padding_waste(iter([])) == 0
    # Two fields count together, and the width of a vector does not count.
    pairs = EncodedData(
        {"a": Ragged.of([[1], [1, 1]]), "b": Ragged.of([np.ones((3, 9)), [[1] * 9]])}
    )
    assert padding_waste(iter([pairs.batch([0, 1])])) == pytest.approx(1 - 7 / 10)


def test_a_batch_made_by_hand():
    batch = Batch(np.arange(1), {"ids": Padded(np.ones((1, 2)), np.array([2]))})
    assert batch.values == {} and batch.real_items == batch.padded_items == 2

"""Reading texts off an encoder-decoder: batches of sources, and one search for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqloom.data.ragged import Ragged
from seqloom.decoding import Hypothesis, Limits, beam_search, coverage, reorder, sample
from seqloom.decoding.beam import most_searches
from seqloom.decoding.steps import Numbers
from seqloom.errors import ConfigError
from seqloom.nn.context import WordsInContext
from seqloom.tasks.seq2seq_fusion import with_language_model
from seqloom.tasks.seq2seq_results import Written
from seqloom.tasks.seq2seq_search import Search
from seqloom.tasks.seq2seq_text import PairText, ReadSource


class _State(NamedTuple):
    """Where a search stands: the model's state, which source it is of, what was looked at."""

    own: Any
    places: NDArray[np.int64]
    attended: Tensor | None


class _Steps:
    """The step of a model over a batch of sources; what it remembers of them is not moved."""

    def __init__(self, model: Any, memory: Any, *, attends: bool) -> None:
        self.model, self.memory, self.attends = model, memory, attends
        self.device = memory.states.device
        self._places: NDArray[np.int64] | None = None
        self._rows: Any = None

    def start(self) -> _State:
        states = self.memory.states
        attended = states.new_zeros(states.shape[:2]) if self.attends else None
        return _State(self.model.begin(self.memory), np.arange(len(states)), attended)

    def rows(self, places: NDArray[np.int64]) -> Any:
        """The memory of these sources; most steps ask for the same ones as the one before.

        Texts of one source stand side by side; where each has as many, a model that shares memory
        gets one row a source.
        """
        if self._places is None or not np.array_equal(self._places, places):
            distinct, counts = np.unique(places, return_counts=True)
            alike = self.model.shares and bool((counts == counts[0]).all())
            self._places = places
            self._rows = reorder(self.memory, distinct if alike else places)
        return self._rows

    @torch.no_grad()
    def __call__(self, last: Numbers, state: _State) -> tuple[Tensor, _State]:
        memory = self.rows(state.places)
        ids = torch.from_numpy(last).to(self.device)[:, None]
        output = self.model.decode(ids, memory, state.own, return_attention=self.attends)
        attended = state.attended
        if attended is not None:
            attended = attended + output.attention[:, 0].to(attended.dtype)
        logs = self.model.output.log_probs(output, memory)[:, 0]
        return logs, _State(output.state, state.places, attended)

    def penalty(self, weight: float) -> Callable[[Any], NDArray[np.float64]]:
        def found(state: Any) -> NDArray[np.float64]:
            own = state if isinstance(state, _State) else state[0]
            return coverage(own.attended, self.memory.lengths[own.places], weight)

        return found


class _Job(NamedTuple):
    """Some sources, and how their texts are to be found."""

    model: Any
    text: PairText
    search: Search
    reads: Sequence[ReadSource]
    memory: Any
    places: Sequence[int]  # among all sources


def write_texts(
    model: Any, text: PairText, reads: Sequence[ReadSource], search: Search
) -> list[Written]:
    """The text of each source, in their order; the best, with the others of `n_best`."""
    wanted = search.coverage_penalty or search.replace_unknown or search.attention
    if wanted and not model.attends:
        raise ConfigError(
            "coverage_penalty, replace_unknown and attention need a model with attention, got "
            "one without"
        )
    if search.replace_unknown and text.source is None:
        raise ConfigError(
            "replace_unknown copies words of a source, got vectors, which have none; leave it out"
        )
    found: dict[int, Written] = {}
    at_once = min(search.batch_size, most_searches(search.beam, len(text.target_vocabulary)))
    for places in _parts([len(read.items) for read in reads], at_once):
        inside = [reads[place] for place in places]
        job = _Job(model, text, search, inside, encode_sources(model, text, inside), places)
        found |= dict(zip(places, _finish(job, _decode(job)), strict=True))
    return [found[place] for place in range(len(reads))]


def _parts(lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """The places of sources of about the same length, some at a time."""
    order = np.argsort(lengths, kind="stable")
    for begin in range(0, len(order), size):
        yield order[begin : begin + size].tolist()


@torch.no_grad()
def encode_sources(model: Any, text: PairText, reads: Sequence[ReadSource]) -> Any:
    """What a model remembers of sources, on its device."""
    device = next(model.parameters()).device
    weight = next(model.parameters())
    values, lengths = Ragged.of([read.items for read in reads]).pad(range(len(reads)))
    items = torch.from_numpy(values).to(device)
    items = items.to(weight.dtype) if items.is_floating_point() else items.long()
    source: Tensor | WordsInContext = items
    if text.context is not None:
        layers, _ = text.context([read.words for read in reads]).pad(range(len(reads)))
        source = WordsInContext(items, torch.from_numpy(layers).to(device))
    copies = None
    if any(len(read.copies) for read in reads):
        padded, _ = Ragged.of([read.copies for read in reads]).pad(range(len(reads)))
        copies = torch.from_numpy(padded).long().to(device)
    return model.encode(source, torch.from_numpy(lengths).to(device), copies)


def _decode(job: _Job) -> list[list[Hypothesis]]:
    """The best ids for each source."""
    text, search, reads = job.text, job.search, job.reads
    specials = text.target_vocabulary.specials
    never = {specials.pad, specials.bos, *({} if search.replace_unknown else {specials.unk})}
    prefixes = [text.prefix_ids(search.prefix, read) for read in reads]
    ends = [
        search.longest(len(read.items), len(prefix))
        for read, prefix in zip(reads, prefixes, strict=True)
    ]
    limits = Limits(
        max_length=max(ends),
        min_length=search.min_length,
        stop=text.end,
        forbidden={text.target_vocabulary[word] for word in never},
        no_repeat=search.no_repeat,
    )
    steps = _Steps(job.model, job.memory, attends=search.coverage_penalty > 0)
    step: Any = steps
    state: Any = steps.start()
    first = [text.begin] * len(reads)
    if search.fused_weight:
        model, weight = search.language_model, search.fused_weight
        step, state = with_language_model(steps, state, text, model, weight, rows=len(reads))
    if search.temperature:
        drawn = sample(
            step,
            state,
            first,
            limits,
            seeds=[search.seed + place for place in job.places],
            temperature=search.temperature,
            top_k=search.top_k,
            top_p=search.top_p,
            max_lengths=ends,
            prefixes=prefixes,
        )
        return [
            [Hypothesis(each.ids, each.log_prob, score=each.log_prob, ended=each.ended)]
            for each in drawn
        ]
    return beam_search(
        step,
        state,
        first,
        limits,
        beam=search.beam,
        n_best=search.n_best,
        length_penalty=search.length_penalty,
        penalty=steps.penalty(search.coverage_penalty) if search.coverage_penalty else None,
        max_lengths=ends,
        prefixes=prefixes,
    )


class _Alignment(NamedTuple):
    """Where texts looked, and how likely each is: by text, (T, S) and a number."""

    attention: list[NDArray[np.float64]] | None
    log_probs: list[float]


@torch.no_grad()
def align(
    model: Any, text: PairText, memory: Any, rows: Sequence[int], ids: Sequence[Sequence[int]]
) -> _Alignment:
    """Read given texts of given sources in one go.

    Args:
        model: The model.
        text: What its ids mean.
        memory: Of all sources.
        rows: Which source each text is of.
        ids: The texts, without their end.
    """
    device = memory.states.device
    given = [[text.begin, *each, text.end] for each in ids]
    values, lengths = Ragged.of(given).pad(range(len(given)))
    target = torch.from_numpy(values).long().to(device)
    own = reorder(memory, list(rows))
    output = model.decode(target[:, :-1], own, model.begin(own), return_attention=model.attends)
    logs = model.output.target_log_probs(output, own, target[:, 1:]).double().cpu().numpy()
    totals = [float(line[: n - 1].sum()) for line, n in zip(logs, lengths, strict=True)]
    if output.attention is None:
        return _Alignment(None, totals)
    weights = output.attention.double().cpu().numpy()
    items = own.lengths.cpu().numpy()
    maps = [weights[i, : lengths[i] - 2, : items[i]] for i in range(len(given))]
    return _Alignment(maps, totals)


def _finish(job: _Job, lists: list[list[Hypothesis]]) -> list[Written]:
    """Ids to texts."""
    text, search = job.text, job.search
    rows = [row for row, found in enumerate(lists) for _ in found]
    every = [hypothesis for found in lists for hypothesis in found]
    maps: Any = [None] * len(every)
    if (search.attention or search.replace_unknown) and every:
        maps = align(job.model, text, job.memory, rows, [each.ids for each in every]).attention
    written: list[list[Written]] = [[] for _ in job.reads]
    for row, hypothesis, attention in zip(rows, every, maps, strict=True):
        read = job.reads[row]
        words = text.words(hypothesis.ids, read)
        if search.replace_unknown:
            words = [
                read.words[int(attention[t, : len(read.words) - 1].argmax())]
                if id_ == text.unknown
                else words[t]
                for t, id_ in enumerate(hypothesis.ids)
            ]
        written[row].append(
            Written(
                text.target.detokenize(words),
                tuple(text.target.shown(words)),
                hypothesis.score,
                hypothesis.log_prob,
                hypothesis.ended,
                read.words if text.source is None else tuple(text.source.shown(read.words)),
                read.cut,
                attention if search.attention else None,
            )
        )
    return [_with_others(found) for found in written]


def _with_others(found: list[Written]) -> Written:
    return replace(found[0], others=tuple(found[1:])) if len(found) > 1 else found[0]

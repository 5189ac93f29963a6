"""Teaching a reader by others: what they say of where the answers of its questions are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from seqloom.data.ragged import Ragged
from seqloom.errors import ConfigError
from seqloom.models.reader_parts import SpanOutput
from seqloom.tasks.reader_data import PassageQuestions, encode_texts, reader_input
from seqloom.tasks.reader_spans import DEVICE_PART, PART
from seqloom.tasks.reader_text import ReadQuestions
from seqloom.tasks.setting_checks import check_number
from seqloom.tasks.supervised_objective import parts_by_length
from seqloom.tasks.teaching import open_fitted, read_teaching

if TYPE_CHECKING:
    from seqloom.tasks.reader import Reader


@dataclass(frozen=True, kw_only=True)
class ReaderTeachingConfig:
    r"""How fitted readers teach another one.

    A question whose answer begins with word y is learned with the probabilities

    $$t_i = (1 - s) \, [i = y] + s \, \frac{1}{K} \sum_k p^{start}_k(i)$$

    of every beginning i, over K teachers, s being the `share`; ends likewise.

    Paper: Hinton, Vinyals and Dean (2015), "Distilling the Knowledge in a Neural Network", NIPS
    workshop, section 2; for readers Hu et al. (2018), "Attention-Guided Answer Distillation for
    Machine Reading Comprehension", EMNLP, section 3.1.
    Differs from the papers: a temperature of 1; teachers have learned from the same questions.

    Args:
        teachers: Fitted readers that cut texts into words as this one does, their directories, or
            names of models that come with the package.
        share: How much of what a question is learned with is theirs.
    """

    teachers: tuple[Any, ...]
    share: float = 0.5

    def __post_init__(self) -> None:
        if not isinstance(self.teachers, tuple | list):
            raise ConfigError(f"teaching.teachers must be a list, got {self.teachers!r}")
        if not self.teachers:
            raise ConfigError("teaching.teachers must name at least one reader, got none")
        check_number("teaching.share", self.share, 1)


class ReaderTeachers(NamedTuple):
    """Readers that teach.

    Args:
        readers: The fitted readers.
        share: How much of what is learned is theirs.
    """

    readers: list[Reader]
    share: float

    @property
    def facts(self) -> dict[str, Any]:
        """Who they are, for the model directory."""
        return {"teachers": [each.arch_ for each in self.readers], "share": self.share}

    def weights(self) -> list[dict[str, torch.Tensor]]:
        """What they are made of, by which a run that resumes knows them again."""
        return [each.model_.state_dict() for each in self.readers]

    def targets(self, train: ReadQuestions, encoded: PassageQuestions, device: Any) -> Ragged:
        """Return what each training question is learned with, (T, 2): beginnings and ends.

        Args:
            train: The training questions.
            encoded: The same as numbers, with their answers.
            device: Where the teachers read.
        """
        assert encoded.spans is not None
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum(encoded.sizes, out=offsets[1:])
        total = np.zeros((int(offsets[-1]), 2), np.float32)
        for reader in self.readers:
            texts = encode_texts(train.passages_words(), train.questions, reader.words_)
            _add_said(total, reader.model_, replace(encoded, texts=texts), offsets, device)
        total *= self.share / len(self.readers)
        for column in range(2):
            total[offsets[:-1] + encoded.spans[:, column], column] += 1 - self.share
        return Ragged(total, offsets)


def open_teachers(owner: Reader) -> ReaderTeachers | None:
    """Return the readers that a reader is to be taught by, if it is.

    Raises:
        ConfigError: If one of them is no fitted reader, or cuts texts into other words.
    """
    config = read_teaching(owner.teaching, ReaderTeachingConfig)
    if config is None:
        return None
    readers = [open_fitted(type(owner), each) for each in config.teachers]
    return ReaderTeachers(readers, float(config.share))


def check_teachers(teachers: Sequence[Reader], pupil: Any) -> None:
    """Refuse teachers that cut texts otherwise than their pupil does.

    Args:
        teachers: The teachers.
        pupil: What cuts texts into words for the pupil.

    Raises:
        ConfigError: Naming the setting.
    """
    for teacher in teachers:
        had = teacher.splitter_
        for name, own, other in (
            ("text", pupil.pipeline.config, had.pipeline.config),
            ("cut_words", pupil.cut, had.cut),
        ):
            if own != other:
                raise ConfigError(
                    f"a teacher must cut texts into the same words; it was fitted with "
                    f"{name}={other!r}, got {own!r}"
                )


def _add_said(
    total: NDArray[np.float32],
    model: Any,
    data: PassageQuestions,
    offsets: NDArray[np.int64],
    device: Any,
) -> None:
    """Add the probabilities of a reader to those of all questions, which lie end to end."""
    before = next(model.parameters()).device
    model.to(device)
    items = PART if torch.device(device).type == "cpu" else DEVICE_PART
    for index in parts_by_length(data.sizes, items):
        with torch.no_grad():
            output: SpanOutput = model(reader_input(data.batch(index).tensors(device)))
            both = torch.stack([output.start, output.end], dim=-1).softmax(dim=1)  # (B, T, 2)
        for row, example in zip(both.float().cpu().numpy(), index.tolist(), strict=True):
            begin, end = offsets[example], offsets[example + 1]
            total[begin:end] += row[: end - begin]
    model.to(before)

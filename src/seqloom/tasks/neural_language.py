"""Language models that are networks: trained by the loop, state carried along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seqloom.architectures import Architecture, load_model_class
from seqloom.config import to_dict
from seqloom.data.prepared import PreparedData
from seqloom.data.windows import Windows
from seqloom.errors import ConfigError, DataError, SeqloomError
from seqloom.nn.held import release_rows
from seqloom.nn.masking import lengths_to_mask
from seqloom.tasks.corpus import working_folder
from seqloom.tasks.directory import (
    TRAINING,
    StoredModel,
    discard_unbegun,
    load_weights,
    prepare_place,
    provenance,
)
from seqloom.tasks.language_engine import (
    FitRequest,
    Fitted,
    Floats,
    Ids,
    LanguageEngine,
    Reading,
    origin,
)
from seqloom.tasks.language_objective import LanguageModelObjective, inform_model, stream_loss
from seqloom.tasks.masked_language import MaskedLanguage
from seqloom.tasks.masked_objective import MaskedObjective
from seqloom.tasks.pretrained import embedding_matrix, put_vectors
from seqloom.tasks.stored_network import StoredNetwork
from seqloom.tasks.two_way_objective import BackwardView, TwoWayObjective
from seqloom.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from seqloom.training import TrainConfig, TrainResult

EVALUATION_WINDOW = 256


class NeuralLanguage(StoredNetwork):
    """The engine of the architectures that torch runs.

    Args:
        model: The network.
        vocabulary: What its ids mean.
    """

    def __init__(self, model: Any, vocabulary: Vocabulary) -> None:
        self.model = model
        self.end = vocabulary[vocabulary.specials.eos]

    # -- fitting ---------------------------------------------------------------------------------

    @classmethod
    def fit(cls, request: FitRequest) -> Fitted:
        """Train a network; a run that fails before its first checkpoint leaves nothing."""
        from seqloom.training.runtime import Runtime

        training = request.build_training()
        _check_settings(request, training)
        runtime = Runtime(training.device, training.precision)
        place = request.place
        if place is not None and runtime.is_main:
            prepare_place(place, resume=request.resume)
        runtime.wait()
        try:
            with working_folder(place and place / TRAINING, is_main=runtime.is_main) as folder:
                with runtime.main_first():
                    data, valid = request.prepared(folder)
                model, result = _train(request, data, valid, training)
        except SeqloomError:
            if place is not None and runtime.is_main:
                discard_unbegun(place)
            raise
        vocabulary = data.vocabularies["words"]
        return Fitted(
            engine=engine_of(model.cpu(), vocabulary),
            vocabulary=vocabulary,
            pipeline=data.pipeline,
            metrics={f"valid_{name}": value for name, value in result.metrics.items()},
            provenance=provenance(
                train=origin(request.train),
                valid=origin(request.valid),
                vectors=origin(request.vectors),
                training=to_dict(training),
                updates=result.steps,
                epochs=result.epochs,
                seconds=round(result.seconds, 1),
            ),
            writes=runtime.is_main,
            wait=runtime.wait,
        )

    # -- use -------------------------------------------------------------------------------------

    def loss(self, ids: Ids) -> tuple[float, int]:
        """Read as one stream, the state carried from sentence to sentence."""
        windows = Windows(
            ids, batch_size=1, window=EVALUATION_WINDOW, before=self.end, keep_rest=True
        )
        return stream_loss(self.model, windows)

    @torch.no_grad()
    def log_probs(self, sequences: Sequence[Ids]) -> list[tuple[float, ...]]:
        """The natural log-probability of each id, all sequences in one batch."""
        ids = [self._tensor(each) for each in sequences]
        lengths = self._tensor(np.array([len(each) for each in ids]))
        targets = nn.utils.rnn.pad_sequence(ids, batch_first=True)  # (B, T)
        first = targets.new_full((len(ids), 1), self.end)
        inputs = torch.cat([first, targets[:, :-1]], dim=1)
        features = self.model(inputs, lengths).features
        real = lengths_to_mask(lengths, targets.shape[1])
        log_probs = self.model.output.target_log_probs(features[real], targets[real])
        return [tuple(row.tolist()) for row in log_probs.split(lengths.tolist())]

    @torch.no_grad()
    def stream(self, ids: Ids, reading: Reading | None = None) -> tuple[Floats, Reading]:
        """Read as one stream, the state carried from sentence to sentence."""
        last, state = (self.end, None) if reading is None else (int(reading.last[0]), reading.state)
        text = self._tensor(np.concatenate([[last], ids]))[None]  # (1, T + 1)
        found = []
        for begin in range(0, len(ids), EVALUATION_WINDOW):
            piece = text[:, begin : begin + EVALUATION_WINDOW + 1]
            output = self.model(piece[:, :-1], None, state)
            logs = self.model.output.target_log_probs(output.features[0], piece[0, 1:])
            found.append(logs.double().cpu().numpy())
            state = output.state
        state = self.model.initial_state(1) if state is None else state
        return np.concatenate([np.empty(0), *found]), Reading(text[:, -1].cpu().numpy(), state)

    @torch.no_grad()
    def read(self, ids: NDArray[Any]) -> Reading:
        """Read texts in one go, all but the last id of each."""
        state = self.model.initial_state(len(ids))
        if ids.shape[1] > 1:
            state = self.model(self._tensor(ids[:, :-1]), None, state).state
        return Reading(np.asarray(ids[:, -1], np.int64), state)

    @torch.no_grad()
    def step(self, ids: NDArray[Any], state: Any) -> tuple[Tensor, Any]:
        """Read one more id of each text."""
        output = self.model(self._tensor(ids)[:, None], None, state)
        return self.model.output.log_probs(output.features[:, -1]), output.state

    @torch.no_grad()
    def features(self, ids: NDArray[Any], state: Any) -> tuple[Tensor, Any]:
        """What the output layer reads (B, T, H) of texts read on from a state."""
        output = self.model(self._tensor(ids), None, state)
        return output.features, output.state

    def _tensor(self, ids: NDArray[Any]) -> Tensor:
        device = next(self.model.parameters()).device
        return torch.as_tensor(np.asarray(ids, np.int64), device=device)

    # -- saving ----------------------------------------------------------------------------------

    @classmethod
    def restore(
        cls, architecture: Architecture, config: Any, vocabulary: Vocabulary, stored: StoredModel
    ) -> LanguageEngine:
        """The network of a model directory."""
        if config.vocab_size != len(vocabulary):
            raise DataError(
                f"must hold {config.vocab_size} words, got {len(vocabulary)}",
                stored.place / "vocabulary.json",
            )
        model = load_model_class(architecture)(config)
        load_weights(model, stored)
        return engine_of(model.eval(), vocabulary)


def is_masked(model: Any) -> bool:
    """Whether a network restores words from both sides."""
    return getattr(model.config, "objective", "causal") == "masked"


def is_two_way(model: Any) -> bool:
    """Whether a network is two language models, one in each direction."""
    return hasattr(model, "set_spellings")


class TwoWayLanguage(NeuralLanguage):
    """The engine of a network of two directions: the forward one, and the loss of the other."""

    def backward_loss(self, ids: Ids) -> tuple[float, int]:
        """The loss of the direction back, of a text whose sentences are turned around."""
        windows = Windows(
            ids, batch_size=1, window=EVALUATION_WINDOW, before=self.end, keep_rest=True
        )
        return stream_loss(BackwardView(self.model), windows)


def engine_of(model: Any, vocabulary: Vocabulary) -> LanguageEngine:
    """The engine of a network, by what it is trained for."""
    if is_masked(model):
        return MaskedLanguage(model, vocabulary)
    return (TwoWayLanguage if is_two_way(model) else NeuralLanguage)(model, vocabulary)


def _check_settings(request: FitRequest, training: TrainConfig) -> None:
    """Refuse what can be refused before any text is read."""
    request.build_config(vocab_size=1)
    if not isinstance(request.window, int) or request.window < 1:
        raise ConfigError(f"window must be a whole number of at least 1, got {request.window!r}")
    if training.needs_validation and request.valid is None:
        raise ConfigError(
            "training.patience, schedule 'plateau' and averaging 'triggered' need validation data, "
            "got valid=None"
        )


def _train(
    request: FitRequest, data: PreparedData, valid: PreparedData | None, training: TrainConfig
) -> tuple[nn.Module, TrainResult]:
    from seqloom.training import train

    vocabulary = data.vocabularies["words"]
    config = request.build_config(vocab_size=len(vocabulary))
    facts = {
        "model": to_dict(config),
        "window": request.window,
        "reverse": request.reverse,
        "vocabulary": vocabulary.hash,
        "train_tokens": len(data.data.sequences["ids"].flat),
        "valid_tokens": None if valid is None else len(valid.data.sequences["ids"].flat),
        "content": {
            "train": data.content,
            "valid": valid and valid.content,
            "text": to_dict(data.pipeline.config),
        },
    }
    if request.vectors is not None:
        facts |= {"vectors": origin(request.vectors), "tune_vectors": request.tune_vectors}
    with torch.random.fork_rng():
        torch.manual_seed(training.seed)
        model = load_model_class(request.architecture)(config)
        inform_model(model, data)
        _begin_with_vectors(model, vocabulary, request, training.seed)
        sizes = {"lanes": training.batch.batch_size, "window": request.window}
        objective: Any
        if is_masked(model):
            objective = MaskedObjective(model, data, valid, **sizes)
        elif is_two_way(model):
            objective = TwoWayObjective(model, data, valid, **sizes)
        else:
            objective = LanguageModelObjective(model, data, valid, **sizes, seed=training.seed)
        result = train(
            model,
            objective,
            training,
            request.place and request.place / TRAINING,
            resume=request.resume,
            facts=facts,
            callbacks=request.callbacks,
        )
    if request.vectors is not None:
        release_rows(model.embedding)
    return model, result


def _begin_with_vectors(model: Any, vocabulary: Vocabulary, request: FitRequest, seed: int) -> None:
    """Put the word vectors that were given into a network."""
    if request.vectors is None:
        return
    if is_two_way(model):
        raise ConfigError(
            f"arch={request.architecture.name!r} makes word vectors of characters, got vectors; "
            "leave vectors out"
        )
    if getattr(model.config, "tied", False) and not request.tune_vectors:
        raise ConfigError(
            "tune_vectors=False keeps word vectors as they are, got tied=True, with which the "
            "output layer trains them; set one of them otherwise"
        )
    given = embedding_matrix(vocabulary, request.vectors, model.embedding.embedding_dim, seed)
    put_vectors(model.embedding, given, frozen=not request.tune_vectors)

"""The settings of a classifier: checked before any data is read, and completed by the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seqloom.architectures import load_config_class
from seqloom.config import from_dict
from seqloom.data.features import Bags, Features
from seqloom.errors import ConfigError, InputError
from seqloom.models.sentence_encoder import SequenceOptions
from seqloom.tasks.classifier_data import ExampleEncoder, TrainingData
from seqloom.tasks.classifier_multilabel import check_threshold, fixed_thresholds
from seqloom.tasks.classifier_sequences import WordSequences
from seqloom.tasks.classifier_text import Terms
from seqloom.tasks.classifier_training import check_class_weight, check_perceptron
from seqloom.tasks.pretrained import EmbeddingMatrix, embedding_matrix, open_vectors
from seqloom.tasks.sequences import Sequences
from seqloom.tasks.setting_checks import check_flags, check_whole
from seqloom.tasks.text_features import FeatureConfig, TermLimits
from seqloom.tasks.unseen_words import check_unseen
from seqloom.text.vectors import WordVectors

if TYPE_CHECKING:
    from seqloom.tasks.classifier import Classifier
    from seqloom.tasks.contextual import ContextReader
    from seqloom.training import TrainConfig


def reads_sequences(owner: Classifier) -> bool:
    """Whether the architecture reads sequences, not one vector an example."""
    return issubclass(load_config_class(owner.architecture), SequenceOptions)


def make_encoder(owner: Classifier) -> ExampleEncoder:
    """Return how examples are read; wrong settings are refused."""
    features = {"features": owner.features, "max_n": owner.max_n, "weighting": owner.weighting}
    most = owner.max_length
    if most is not None:
        check_whole(owner, "max_length", 1)
    sequences = reads_sequences(owner)
    if sequences and most is None:
        most = load_config_class(owner.architecture).MAX_LENGTH
    return ExampleEncoder(
        from_dict(FeatureConfig, features),
        from_dict(TermLimits, owner.vocabulary or {}, where="vocabulary"),
        sequences,
        owner.multilabel,
        most,
    )


def unseen_vectors(owner: Classifier) -> WordVectors | None:
    """Return the vectors that words outside the training data are known by, if they shall be."""
    if owner.vectors is None or not owner.unseen_vectors:
        return None
    return open_vectors(owner.vectors)


def check_settings(owner: Classifier, training: TrainConfig) -> ExampleEncoder:
    """Refuse what can be refused before any data is read."""
    check_flags(owner, "tune_vectors", "multilabel", "calibrate")
    encoder = make_encoder(owner)
    if encoder.sequences:
        _check_sequence_settings(owner, encoder.features)
    else:
        _check_vector_settings(owner)
    model_config(owner, None, 2)
    share = owner.valid_share
    if share is not None and not (isinstance(share, int | float) and 0 <= share < 1):
        raise ConfigError(f"valid_share must lie in [0, 1), got {share!r}")
    check_threshold(owner.threshold)
    check_class_weight(owner.class_weight, owner.arch)
    if owner.arch == "perceptron":
        check_perceptron(training)
        if owner.calibrate:
            raise ConfigError("the perceptron gives no probabilities, got calibrate=True")
    if owner.multilabel and owner.arch in ("softmax", "perceptron"):
        raise ConfigError(
            f"architecture {owner.arch!r} chooses one class, got multilabel=True; use 'logistic', "
            "'mlp' or one that reads words in order"
        )
    return encoder


def _check_sequence_settings(owner: Classifier, features: FeatureConfig) -> None:
    if features != FeatureConfig():
        raise ConfigError(
            f"architecture {owner.arch!r} reads words in order and takes no features, max_n or "
            f"weighting, got {features.features!r}, {features.max_n} and {features.weighting!r}"
        )
    check_unseen(owner.unseen_vectors)
    if not owner.tune_vectors and owner.vectors is None:
        raise ConfigError("tune_vectors=False keeps given vectors as they are, got vectors=None")
    if owner.unseen_vectors and owner.vectors is None:
        raise ConfigError("unseen_vectors=True knows words by given vectors, got vectors=None")


def _check_vector_settings(owner: Classifier) -> None:
    if owner.features == "embedding" and owner.arch != "mlp":
        raise ConfigError(
            "features='embedding' learns word vectors, which only architecture 'mlp' does, got "
            f"{owner.arch!r}; use arch='mlp' (hidden_sizes=() for a softmax layer alone)"
        )
    given = {
        "vectors": None,
        "contextual": None,
        "tune_vectors": True,
        "unseen_vectors": False,
        "max_length": None,
    }
    for name, default in given.items():
        if getattr(owner, name) is not default:
            raise ConfigError(
                f"{name} is for architectures that read words in order, such as 'cnn', got "
                f"{getattr(owner, name)!r} for {owner.arch!r}"
            )


def model_config(
    owner: Classifier,
    features: Features | None,
    classes: int,
    embed_size: int | None = None,
    context: ContextReader | None = None,
) -> Any:
    """Return the configuration for some features and classes.

    Args:
        owner: The classifier.
        features: Of the training examples; None where only the rest is to be checked.
        classes: How many there are.
        embed_size: The width of given word vectors.
        context: What reads the context of words, if it is read.
    """
    single = owner.arch == "logistic" and classes == 2 and not owner.multilabel
    from_data: dict[str, Any] = {"output_size": 1 if single else classes}
    if reads_sequences(owner):
        words = features is None or (isinstance(features, Sequences) and features.are_ids)
        width = 2 if features is None else features.width
        from_data |= {"vocab_size": width if words else 0, "input_size": 0 if words else width}
        if embed_size is not None:
            from_data["embed_size"] = embed_size
        if context is not None:
            from_data["context"] = context.options
        return owner.build_config(**from_data)
    from_data["input_size"] = 1 if features is None else features.width
    if owner.arch == "mlp":
        from_data["embedded"] = isinstance(features, Bags) and owner.features == "embedding"
    return owner.build_config(**from_data)


def word_vectors(
    owner: Classifier, terms: Terms | None, seed: int, source: WordVectors | None = None
) -> EmbeddingMatrix | None:
    """Return the word vectors to begin with, if some were given; `source` if it was read already.

    An `embed_size` that is not the architecture's own must be theirs.

    Raises:
        InputError: If there are no words.
    """
    if owner.vectors is None:
        return None
    if not isinstance(terms, WordSequences):
        raise InputError("vectors are for texts, got sequences of vectors in X")
    wanted = owner.get_params(deep=False)["embed_size"] if owner.sets("embed_size") else None
    return embedding_matrix(terms.vocabulary, source or owner.vectors, wanted, seed)


def own_valid_share(owner: Classifier) -> float:
    """Return the share of the training data that validates."""
    if owner.valid_share is not None:
        return owner.valid_share
    return float(getattr(load_config_class(owner.architecture), "VALID_SHARE", 0.0))


def check_data(owner: Classifier, data: TrainingData) -> None:
    """Refuse, before training, what the data makes impossible.

    Raises:
        ConfigError: If there is nothing to calibrate or choose thresholds by, or the architecture
            takes no probabilities of labels.
        InputError: If a threshold is of a label that does not occur.
    """
    if owner.arch == "perceptron" and data.train.targets.ndim > 1:
        raise ConfigError("the perceptron learns from labels alone, got probabilities in y")
    tune = owner.multilabel and owner.threshold == "tune"
    if data.valid is None and (owner.calibrate or tune):
        raise ConfigError(
            "calibrate=True and threshold='tune' need validation data, got valid=None; give some "
            "or raise valid_share"
        )
    if owner.multilabel:
        fixed_thresholds(owner.threshold, data.classes)

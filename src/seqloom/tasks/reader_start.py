"""Readers that learn further from a fitted one: its words, its settings of text, its weights."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from seqloom.architectures import load_config_class, load_model_class
from seqloom.config import from_dict, to_dict
from seqloom.errors import ConfigError

if TYPE_CHECKING:
    from seqloom.tasks.reader import Reader

OF_WORDS = {"vectors": None, "contextual": None, "min_count": 10, "unseen_vectors": True}
"""Settings, with their defaults, that choose words."""


def open_start(owner: Reader) -> Reader | None:
    """Return a copy of the reader that `owner` begins as, if there is one.

    Args:
        owner: Whose settings count; those that would not fit the fitted reader are refused.

    Raises:
        ConfigError: Naming the setting that does not fit.
    """
    if owner.start is None:
        return None
    if isinstance(owner.start, type(owner)):
        owner.start.require_fitted()
        begun = deepcopy(owner.start)
    elif isinstance(owner.start, str) or hasattr(owner.start, "__fspath__"):
        begun = type(owner).load(owner.start)
    else:
        raise ConfigError(
            f"start must be a reader, a model directory or a name, got {owner.start!r}"
        )
    for name, default in OF_WORDS.items():
        if getattr(owner, name) != default:
            raise ConfigError(f"start brings its words and their vectors; leave {name} out")
    differing: list[tuple[str, Any, Any]] = [
        ("arch", owner.arch, begun.arch),
        ("cut_words", owner.cut_words, begun.cut_words),
        ("rules", owner.rules, begun.rules),
    ]
    if owner.text is not None:
        wanted = owner.make_splitter().pipeline.config
        differing.append(("text", wanted, begun.splitter_.pipeline.config))
    for name, own, had in differing:
        if own != had:
            raise ConfigError(f"start was fitted with {name}={had!r}, got {own!r}")
    return begun


def continued(owner: Reader, begun: Reader) -> Any:
    """Return the network of a fitted reader to train further, with the options of `owner`.

    Args:
        owner: Options it was given, such as `dropout`, replace those of the fitted reader.
        begun: The fitted reader.

    Raises:
        ConfigError: If they make another network of it.
    """
    options = owner.given_options()
    config = from_dict(
        load_config_class(owner.architecture), {**to_dict(begun.model_.config), **options}
    )
    model = load_model_class(owner.architecture)(config)
    weights = begun.model_.state_dict()
    shapes = {name: tuple(weight.shape) for name, weight in weights.items()}
    for name, weight in model.state_dict().items():
        if shapes.pop(name, None) != tuple(weight.shape):
            shapes[name] = tuple(weight.shape)
    if shapes:
        raise ConfigError(
            f"the options {options} make another network than that of start: "
            f"{', '.join(sorted(shapes))} would differ"
        )
    model.load_state_dict(weights)
    model.input.embedding.weight.requires_grad_(owner.tune_vectors)
    return model

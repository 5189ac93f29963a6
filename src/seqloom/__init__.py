"""Seqloom: sequence models from n-grams to attention.

Importing this package is quick: it loads neither torch nor numba. What is named here is imported
when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqloom.tasks.captioner import Captioner as Captioner
    from seqloom.tasks.classifier import Classifier as Classifier
    from seqloom.tasks.embedder import Embedder as Embedder
    from seqloom.tasks.forecaster import Forecaster as Forecaster
    from seqloom.tasks.language_model import LanguageModel as LanguageModel
    from seqloom.tasks.loading import load as load
    from seqloom.tasks.mixing import mix as mix
    from seqloom.tasks.neural_cache import with_cache as with_cache
    from seqloom.tasks.reader import Reader as Reader
    from seqloom.tasks.recognizer import Recognizer as Recognizer
    from seqloom.tasks.regressor import Regressor as Regressor
    from seqloom.tasks.relation_classifier import RelationClassifier as RelationClassifier
    from seqloom.tasks.summarizer import Summarizer as Summarizer
    from seqloom.tasks.tagger import Tagger as Tagger
    from seqloom.tasks.translator import Translator as Translator

__version__ = "0.1.0"

__all__ = [
    "Captioner",
    "Classifier",
    "Embedder",
    "Forecaster",
    "LanguageModel",
    "Reader",
    "Recognizer",
    "Regressor",
    "RelationClassifier",
    "Summarizer",
    "Tagger",
    "Translator",
    "__version__",
    "load",
    "mix",
    "with_cache",
]

_PLACES = {
    "Captioner": "seqloom.tasks.captioner:Captioner",
    "Classifier": "seqloom.tasks.classifier:Classifier",
    "Embedder": "seqloom.tasks.embedder:Embedder",
    "Forecaster": "seqloom.tasks.forecaster:Forecaster",
    "LanguageModel": "seqloom.tasks.language_model:LanguageModel",
    "Reader": "seqloom.tasks.reader:Reader",
    "Recognizer": "seqloom.tasks.recognizer:Recognizer",
    "Regressor": "seqloom.tasks.regressor:Regressor",
    "RelationClassifier": "seqloom.tasks.relation_classifier:RelationClassifier",
    "Summarizer": "seqloom.tasks.summarizer:Summarizer",
    "Translator": "seqloom.tasks.translator:Translator",
    "Tagger": "seqloom.tasks.tagger:Tagger",
    "load": "seqloom.tasks.loading:load",
    "mix": "seqloom.tasks.mixing:mix",
    "with_cache": "seqloom.tasks.neural_cache:with_cache",
}


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        from seqloom.architectures import import_place

        return import_place(_PLACES[name])
    raise AttributeError(f"module 'seqloom' has no attribute {name!r}")

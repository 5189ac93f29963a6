"""The one table of architectures: what can be chosen by name, without importing any of it.

A model appears here by one line that a search for its name finds. `seqloom list` prints the table;
tasks look an architecture up, check the user's options against its configuration and only then
import the code.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from seqloom.errors import BackendError, ConfigError, one_of

EXTRAS = {"neural": "torch"}  # extra -> a module that is there when the extra is installed


@dataclass(frozen=True)
class Architecture:
    """One line of the table.

    Args:
        task: The task it belongs to, as the command line spells it ("lm", "classify", ...).
        name: What the user writes in `arch=`.
        summary: One line for `seqloom list`.
        config: Where its configuration lies, as "module:Class".
        model: Where its code lies, as "module:Class".
        extra: The extra that must be installed, if any.
        preset: Settings the name stands for, which a user does not set.
        is_counted: Whether it is counted in one go, not trained by gradients.
        reads: What it learns from: "text" or "trees".
    """

    task: str
    name: str
    summary: str
    config: str
    model: str
    extra: str | None = None
    preset: Mapping[str, Any] = field(default_factory=dict)
    is_counted: bool = False
    reads: str = "text"


_LM = "seqloom.models.recurrent_lm:RecurrentLM"
_LINEAR = "seqloom.models.linear:Linear"
_RNET = "seqloom.models.rnet:RNet"
_NEURAL = "neural"

ARCHITECTURES: tuple[Architecture, ...] = (
    Architecture(
        "lm",
        "ngram",
        "counted n-grams with back-off (Kneser-Ney 1995, Chen and Goodman 1999)",
        "seqloom.ngram.config:NgramConfig",
        "seqloom.ngram.model:NgramModel",
        is_counted=True,
    ),
    Architecture(
        "lm",
        "pcfg",
        "probabilistic grammar read off a treebank (Jelinek 1992, Klein and Manning 2003)",
        "seqloom.grammar.config:PcfgConfig",
        "seqloom.grammar.model:PcfgModel",
        is_counted=True,
        reads="trees",
    ),
    Architecture(
        "lm",
        "nnlm",
        "feed-forward network over the last words (Bengio 2003)",
        "seqloom.models.nnlm:NNLMConfig",
        "seqloom.models.nnlm:NNLM",
        _NEURAL,
    ),
    Architecture(
        "lm",
        "rnn",
        "simple recurrent network (Mikolov 2010)",
        f"{_LM}Config",
        _LM,
        _NEURAL,
        {"cell": "rnn"},
    ),
    Architecture(
        "lm",
        "lstm",
        "long short-term memory (Zaremba 2014)",
        f"{_LM}Config",
        _LM,
        _NEURAL,
        {"cell": "lstm"},
    ),
    Architecture(
        "lm",
        "gru",
        "gated recurrent unit (Cho 2014)",
        f"{_LM}Config",
        _LM,
        _NEURAL,
        {"cell": "gru"},
    ),
    Architecture(
        "lm",
        "peephole",
        "LSTM whose gates see the cell state (Gers 2002)",
        f"{_LM}Config",
        _LM,
        _NEURAL,
        {"cell": "peephole-lstm"},
    ),
    Architecture(
        "lm",
        "recurrent",
        "a recurrent network of any cell, also your own",
        f"{_LM}Config",
        _LM,
        _NEURAL,
    ),
    Architecture(
        "lm",
        "attention",
        "recurrent network that attends to its own past (Daniluk 2017)",
        "seqloom.models.attention_lm:AttentionLMConfig",
        "seqloom.models.attention_lm:AttentionLM",
        _NEURAL,
    ),
    Architecture(
        "lm",
        "cnn",
        "gated causal convolutions (Dauphin 2017)",
        "seqloom.models.cnn_lm:CNNLMConfig",
        "seqloom.models.cnn_lm:CNNLM",
        _NEURAL,
    ),
    Architecture(
        "lm",
        "elmo",
        "LSTMs over characters of words, one a direction, trained together (Peters 2018)",
        "seqloom.models.elmo:ElmoConfig",
        "seqloom.models.elmo:Elmo",
        _NEURAL,
    ),
    Architecture(
        "lm",
        "transformer",
        "self-attention, left to right or both ways (Vaswani 2017, Devlin 2019)",
        "seqloom.models.transformer_lm:TransformerLMConfig",
        "seqloom.models.transformer_lm:TransformerLM",
        _NEURAL,
    ),
    Architecture(
        "classify",
        "softmax",
        "softmax regression: one linear score a class (Theil 1969)",
        f"{_LINEAR}ClassifierConfig",
        _LINEAR,
        _NEURAL,
    ),
    Architecture(
        "classify",
        "logistic",
        "logistic regression, one class against the rest (Cox 1958)",
        f"{_LINEAR}ClassifierConfig",
        _LINEAR,
        _NEURAL,
    ),
    Architecture(
        "classify",
        "perceptron",
        "perceptron, learning from its mistakes (Rosenblatt 1958)",
        "seqloom.models.perceptron:PerceptronConfig",
        "seqloom.models.perceptron:Perceptron",
        _NEURAL,
    ),
    Architecture(
        "classify",
        "mlp",
        "multi-layer perceptron with rectified units (Rumelhart 1986)",
        "seqloom.models.mlp:MLPConfig",
        "seqloom.models.mlp:MLP",
        _NEURAL,
    ),
    Architecture(
        "classify",
        "cnn",
        "filters of several widths over words, pooled (Kim 2014)",
        "seqloom.models.cnn_classifier:CNNClassifierConfig",
        "seqloom.models.cnn_classifier:CNNClassifier",
        _NEURAL,
    ),
    Architecture(
        "classify",
        "brnn",
        "simple recurrent networks of both directions, pooled (Zhang and Wang 2015)",
        "seqloom.models.recurrent_classifier:BRNNConfig",
        "seqloom.models.recurrent_classifier:RecurrentClassifier",
        _NEURAL,
    ),
    Architecture(
        "classify",
        "blstm",
        "LSTMs of both directions, pooled (Zhang 2015)",
        "seqloom.models.recurrent_classifier:BLSTMConfig",
        "seqloom.models.recurrent_classifier:RecurrentClassifier",
        _NEURAL,
    ),
    Architecture(
        "classify",
        "att-blstm",
        "LSTMs of both directions with attention (Zhou 2016)",
        "seqloom.models.recurrent_classifier:AttBLSTMConfig",
        "seqloom.models.recurrent_classifier:RecurrentClassifier",
        _NEURAL,
    ),
    Architecture(
        "classify",
        "joint-attention",
        "peephole LSTMs of both directions and heads of attention over them",
        "seqloom.models.joint_attention:JointAttentionConfig",
        "seqloom.models.joint_attention:JointAttention",
        _NEURAL,
    ),
    Architecture(
        "classify",
        "transformer",
        "self-attention, pooled (Vaswani 2017)",
        "seqloom.models.transformer_classifier:TransformerClassifierConfig",
        "seqloom.models.transformer_classifier:TransformerClassifier",
        _NEURAL,
    ),
    Architecture(
        "relate",
        "brnn",
        "simple recurrent networks of both directions, pooled (Zhang and Wang 2015)",
        "seqloom.models.recurrent_classifier:BRNNConfig",
        "seqloom.models.recurrent_classifier:RecurrentClassifier",
        _NEURAL,
    ),
    Architecture(
        "relate",
        "blstm",
        "LSTMs of both directions, pooled (Zhang 2015)",
        "seqloom.models.recurrent_classifier:BLSTMConfig",
        "seqloom.models.recurrent_classifier:RecurrentClassifier",
        _NEURAL,
    ),
    Architecture(
        "relate",
        "att-blstm",
        "LSTMs of both directions with attention (Zhou 2016)",
        "seqloom.models.recurrent_classifier:AttBLSTMConfig",
        "seqloom.models.recurrent_classifier:RecurrentClassifier",
        _NEURAL,
    ),
    Architecture(
        "relate",
        "cnn",
        "filters of several widths over words, pooled (Nguyen and Grishman 2015)",
        "seqloom.models.cnn_classifier:CNNClassifierConfig",
        "seqloom.models.cnn_classifier:CNNClassifier",
        _NEURAL,
    ),
    Architecture(
        "relate",
        "joint-attention",
        "peephole LSTMs of both directions and heads of attention over them",
        "seqloom.models.joint_attention:JointAttentionConfig",
        "seqloom.models.joint_attention:JointAttention",
        _NEURAL,
    ),
    Architecture(
        "relate",
        "transformer",
        "self-attention, pooled (Vaswani 2017)",
        "seqloom.models.transformer_classifier:TransformerClassifierConfig",
        "seqloom.models.transformer_classifier:TransformerClassifier",
        _NEURAL,
    ),
    Architecture(
        "forecast",
        "recurrent",
        "recurrent layers of any cell over a series, with intervals (Elman 1990)",
        "seqloom.models.forecaster:ForecasterConfig",
        "seqloom.models.forecaster:Forecaster",
        _NEURAL,
    ),
    Architecture(
        "recognize",
        "ctc",
        "recurrent layers of any cell, labels not aligned (Graves 2006)",
        "seqloom.models.recognizer:RecognizerConfig",
        "seqloom.models.recognizer:Recognizer",
        _NEURAL,
    ),
    Architecture(
        "tag",
        "blstm",
        "recurrent layers of both directions over words and their characters, CRF (Huang 2015)",
        "seqloom.models.tagger:RecurrentTaggerConfig",
        "seqloom.models.tagger:RecurrentTagger",
        _NEURAL,
    ),
    Architecture(
        "tag",
        "cnn",
        "layers of windows over words and their characters, CRF (Collobert 2011)",
        "seqloom.models.tagger:CNNTaggerConfig",
        "seqloom.models.tagger:CNNTagger",
        _NEURAL,
    ),
    Architecture(
        "regress",
        "linear",
        "least squares, with a ridge if wanted (Hoerl 1970)",
        "seqloom.models.linear:LeastSquaresConfig",
        _LINEAR,
        _NEURAL,
    ),
    Architecture(
        "regress",
        "logistic",
        "a logistic curve that grows to a limit (Verhulst 1838)",
        "seqloom.models.logistic_curve:LogisticCurveConfig",
        "seqloom.models.logistic_curve:LogisticCurve",
        _NEURAL,
    ),
    Architecture(
        "embed",
        "word2vec",
        "skip-gram and CBOW word vectors (Mikolov 2013)",
        "seqloom.word2vec.config:Word2VecConfig",
        "seqloom.word2vec.model:Word2Vec",
        is_counted=True,
    ),
    Architecture(
        "embed",
        "elmo",
        "words in context: LSTMs over characters of words, one a direction (Peters 2018)",
        "seqloom.models.elmo:ElmoConfig",
        "seqloom.models.elmo:ElmoEncoder",
        _NEURAL,
    ),
    Architecture(
        "embed",
        "transformer",
        "words in context: self-attention that restores words (Devlin 2019)",
        "seqloom.models.transformer_lm:TransformerLMConfig",
        "seqloom.models.transformer_lm:TransformerLM",
        _NEURAL,
        {"objective": "masked"},
    ),
    Architecture(
        "summarize",
        "textrank",
        "random walk over sentences with common words (Mihalcea and Tarau 2004)",
        "seqloom.extract.config:TextRankConfig",
        "seqloom.extract.scorers:TextRank",
        is_counted=True,
    ),
    Architecture(
        "summarize",
        "lexrank",
        "random walk over sentences of high cosine (Erkan and Radev 2004)",
        "seqloom.extract.config:LexRankConfig",
        "seqloom.extract.scorers:LexRank",
        is_counted=True,
    ),
    Architecture(
        "summarize",
        "tfidf",
        "rarity of a sentence's words",
        "seqloom.extract.config:TfidfConfig",
        "seqloom.extract.scorers:Tfidf",
        is_counted=True,
    ),
    Architecture(
        "summarize",
        "lead",
        "the first sentences",
        "seqloom.extract.config:LeadConfig",
        "seqloom.extract.scorers:Lead",
        is_counted=True,
    ),
    Architecture(
        "summarize",
        "features",
        "weighted sum of features of a sentence (Edmundson 1969)",
        "seqloom.extract.config:FeaturesConfig",
        "seqloom.extract.scorers:Features",
        is_counted=True,
    ),
    Architecture(
        "summarize",
        "seq2seq",
        "recurrent encoder-decoder with or without attention (Bahdanau 2015, Luong 2015)",
        "seqloom.models.seq2seq:Seq2SeqConfig",
        "seqloom.models.seq2seq:Seq2Seq",
        _NEURAL,
    ),
    Architecture(
        "summarize",
        "pointer",
        "recurrent encoder-decoder that copies words of its source (See 2017)",
        "seqloom.models.pointer_generator:PointerConfig",
        "seqloom.models.pointer_generator:PointerGenerator",
        _NEURAL,
    ),
    Architecture(
        "summarize",
        "transformer",
        "encoder-decoder of self-attention (Vaswani 2017)",
        "seqloom.models.transformer_seq2seq:TransformerSeq2SeqConfig",
        "seqloom.models.transformer_seq2seq:TransformerSeq2Seq",
        _NEURAL,
    ),
    Architecture(
        "translate",
        "seq2seq",
        "recurrent encoder-decoder with or without attention (Bahdanau 2015, Luong 2015)",
        "seqloom.models.seq2seq:Seq2SeqConfig",
        "seqloom.models.seq2seq:Seq2Seq",
        _NEURAL,
    ),
    Architecture(
        "translate",
        "pointer",
        "recurrent encoder-decoder that copies words of its source (See 2017)",
        "seqloom.models.pointer_generator:PointerConfig",
        "seqloom.models.pointer_generator:PointerGenerator",
        _NEURAL,
    ),
    Architecture(
        "translate",
        "transformer",
        "encoder-decoder of self-attention (Vaswani 2017)",
        "seqloom.models.transformer_seq2seq:TransformerSeq2SeqConfig",
        "seqloom.models.transformer_seq2seq:TransformerSeq2Seq",
        _NEURAL,
    ),
    Architecture(
        "caption",
        "recurrent",
        "one vector to words, by any cell (Vinyals 2015)",
        "seqloom.models.captioner:CaptionerConfig",
        "seqloom.models.captioner:CaptionNetwork",
        _NEURAL,
    ),
    Architecture(
        "answer",
        "bidaf",
        "attention from a passage to a question and back (Seo 2017)",
        "seqloom.models.bidaf:BiDAFConfig",
        "seqloom.models.bidaf:BiDAF",
        _NEURAL,
    ),
    Architecture(
        "answer",
        "rnet",
        "a passage matched with a question and itself, any options (Wang 2017)",
        f"{_RNET}Config",
        _RNET,
        _NEURAL,
    ),
    Architecture(
        "answer",
        "rnet-notes",
        "R-Net with bilinear attention, in parallel over the passage",
        f"{_RNET}Config",
        _RNET,
        _NEURAL,
        {
            "attention": "general",
            "matching": "parallel",
            "self_gate": False,
            "output": "softmax",
        },
    ),
    Architecture(
        "answer",
        "rnet-parallel",
        "R-Net with the parallel attention of rnet-notes, gate and pointer of rnet-paper",
        f"{_RNET}Config",
        _RNET,
        _NEURAL,
        {
            "attention": "general",
            "matching": "parallel",
            "self_gate": True,
            "output": "pointer",
        },
    ),
    Architecture(
        "answer",
        "rnet-paper",
        "R-Net as published: additive attention, word after word, pointer (Wang 2017)",
        f"{_RNET}Config",
        _RNET,
        _NEURAL,
        {
            "attention": "additive",
            "matching": "recurrent",
            "self_gate": True,
            "output": "pointer",
            "num_layers": 3,
            "characters": "rnn",
            "num_highways": 0,
        },
    ),
)

# What is made of fitted models, not fitted to text; `seqloom list` does not show them.
COMPOSITES: tuple[Architecture, ...] = (
    Architecture(
        "lm",
        "mix",
        "several language models, interpolated (Jelinek and Mercer 1980)",
        "seqloom.tasks.mixing:MixConfig",
        "seqloom.tasks.mixing:MixedLanguage",
    ),
    Architecture(
        "lm",
        "cache",
        "a network with a cache of its last words (Grave 2017)",
        "seqloom.tasks.neural_cache:CacheConfig",
        "seqloom.tasks.neural_cache:CachedLanguage",
        _NEURAL,
    ),
)

# Task -> where its estimator lies.
TASKS: dict[str, str] = {
    "lm": "seqloom.tasks.language_model:LanguageModel",
    "classify": "seqloom.tasks.classifier:Classifier",
    "regress": "seqloom.tasks.regressor:Regressor",
    "embed": "seqloom.tasks.embedder:Embedder",
    "forecast": "seqloom.tasks.forecaster:Forecaster",
    "recognize": "seqloom.tasks.recognizer:Recognizer",
    "relate": "seqloom.tasks.relation_classifier:RelationClassifier",
    "summarize": "seqloom.tasks.summarizer:Summarizer",
    "translate": "seqloom.tasks.translator:Translator",
    "caption": "seqloom.tasks.captioner:Captioner",
    "tag": "seqloom.tasks.tagger:Tagger",
    "answer": "seqloom.tasks.reader:Reader",
}


def architectures(task: str | None = None) -> list[Architecture]:
    """Return the table, or the part of it that belongs to one task."""
    if task is None:
        return list(ARCHITECTURES)
    found = [entry for entry in ARCHITECTURES if entry.task == task]
    if not found:
        raise ConfigError(one_of("task", task, {entry.task for entry in ARCHITECTURES}))
    return found


def find_architecture(task: str, name: str) -> Architecture:
    """Return the entry for `name`; an unknown one is refused with the nearest known name."""
    composites = [entry for entry in COMPOSITES if entry.task == task]
    entries = {entry.name: entry for entry in (*architectures(task), *composites)}
    if name not in entries:
        raise ConfigError(one_of(f"architecture for task {task!r}", name, entries))
    return entries[name]


def missing_extra(entry: Architecture) -> str | None:
    """Return the extra this architecture needs and the environment lacks, or None."""
    if entry.extra and importlib.util.find_spec(EXTRAS[entry.extra]) is None:
        return entry.extra
    return None


def load_config_class(entry: Architecture) -> Any:
    """Import and return the architecture's configuration dataclass."""
    return _load(entry, entry.config)


def load_model_class(entry: Architecture) -> Any:
    """Import and return the architecture's class."""
    return _load(entry, entry.model)


def _load(entry: Architecture, place: str) -> Any:
    extra = missing_extra(entry)
    if extra:
        raise BackendError(
            f"architecture {entry.name!r} needs {EXTRAS[extra]}, which is not installed; "
            f"pip install 'seqloom[{extra}]'"
        )
    return import_place(place)


def import_place(place: str) -> Any:
    """Import what lies at "module:name"; a package of an extra that is missing is named."""
    module, _, name = place.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        for extra, needed in EXTRAS.items():
            if error.name == needed:
                raise BackendError(
                    f"{name} needs {needed}, which is not installed; pip install 'seqloom[{extra}]'"
                ) from None
        raise

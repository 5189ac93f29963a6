"""Files to examples to batches."""

from seqloom.data.batches import Batch, EncodedData, Padded
from seqloom.data.bucketing import BatchConfig, Bucketing, padding_waste
from seqloom.data.columns import read_conllu, read_tagged
from seqloom.data.datasets import dataset_names, dataset_path, get_dataset, open_dataset
from seqloom.data.examples import (
    Answer,
    LabeledText,
    Question,
    Relation,
    TaggedTokens,
    Text,
    TextPair,
    Tree,
)
from seqloom.data.fields import read_labeled, read_pairs, read_texts
from seqloom.data.inputs import FieldNames, read_input
from seqloom.data.lines import read_parallel, read_text, read_token_lines
from seqloom.data.overlap import Overlap, overlap
from seqloom.data.prepare import prepare
from seqloom.data.prepared import PrepareConfig, PreparedData
from seqloom.data.problems import Records
from seqloom.data.questions import read_questions
from seqloom.data.ragged import Ragged
from seqloom.data.relations import parse_marked, read_marked, read_relations
from seqloom.data.rows import Row, read_rows
from seqloom.data.trees import read_trees
from seqloom.data.windows import Windows

__all__ = [
    "Answer",
    "Batch",
    "BatchConfig",
    "Bucketing",
    "EncodedData",
    "FieldNames",
    "LabeledText",
    "Overlap",
    "Padded",
    "PrepareConfig",
    "PreparedData",
    "Question",
    "Ragged",
    "Records",
    "Relation",
    "Row",
    "TaggedTokens",
    "Text",
    "TextPair",
    "Tree",
    "Windows",
    "dataset_names",
    "dataset_path",
    "get_dataset",
    "open_dataset",
    "overlap",
    "padding_waste",
    "parse_marked",
    "prepare",
    "read_conllu",
    "read_input",
    "read_labeled",
    "read_marked",
    "read_pairs",
    "read_parallel",
    "read_questions",
    "read_relations",
    "read_rows",
    "read_tagged",
    "read_text",
    "read_texts",
    "read_token_lines",
    "read_trees",
]

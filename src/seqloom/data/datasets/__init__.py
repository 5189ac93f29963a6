"""Named data sets: a catalogue, where they lie, how they are fetched, checked and read."""

from seqloom.data.datasets.catalog import DataFile, Dataset, Split, dataset_names, find_dataset
from seqloom.data.datasets.reading import open_dataset
from seqloom.data.datasets.store import (
    FileStatus,
    data_folder,
    dataset_file,
    dataset_path,
    get_dataset,
    verify,
)

__all__ = [
    "DataFile",
    "Dataset",
    "FileStatus",
    "Split",
    "data_folder",
    "dataset_file",
    "dataset_names",
    "dataset_path",
    "find_dataset",
    "get_dataset",
    "open_dataset",
    "verify",
]

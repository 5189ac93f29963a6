"""A plain FastAPI handler around the same reader: the peer of `benchmarks/serving.py`.

Run: `READER=DIR uvicorn serving_peer:app`.
"""

from __future__ import annotations

import os

from fastapi import FastAPI
from pydantic import BaseModel

from seqloom.tasks.reader import Reader

app = FastAPI()
reader = Reader.load(os.environ["READER"])


class Asked(BaseModel):
    """A passage and a question."""

    passage: str
    question: str
    k: int = 3


@app.post("/v1/answer")
def answer(asked: Asked) -> dict[str, object]:
    """Answer as the library does, in FastAPI's own pool of threads."""
    best = reader.answer_all([(asked.passage, asked.question)], top=asked.k)[0][0]
    return {"start": best.start, "end": best.end, "probability": best.probability}

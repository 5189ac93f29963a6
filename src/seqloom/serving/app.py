"""The HTTP app: one endpoint a job, and what operators ask for."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pydantic_core
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from seqloom import __version__
from seqloom.serving import answers, requests
from seqloom.serving.errors import ServingError, error_body
from seqloom.serving.guard import Guard, internal_error
from seqloom.serving.metrics import CONTENT_TYPE
from seqloom.serving.service import Service, service_of

_log = logging.getLogger(__name__)
STUDIO = Path(__file__).parent / "studio"
REASONS = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    404: "No model for this task, or none of that name, is served.",
    408: "The body took too long to arrive.",
    413: "The body or a text is too long.",
    415: "The body is not of type application/json.",
    422: "A field is missing, unknown or out of bounds, or the model cannot use the input.",
    429: "More is asked than can be answered; see Retry-After.",
    503: "The request took too long, its worker ended, or the server ends; see Retry-After.",
}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": answers.ErrorAnswer, "description": told} for status, told in REASONS.items()
}
EVENTS = (
    "With `stream`, server-sent events: `word` with a word and the text so far, then `done` with "
    "the answer, or `error`."
)


class StrictRequest(Request):
    """A request whose JSON has no NaN, no lone surrogate, and is not deep."""

    async def json(self) -> Any:
        """The body's value."""
        if not hasattr(self, "_json"):
            try:
                self._json = pydantic_core.from_json(await self.body(), allow_inf_nan=False)
            except ValueError:
                message = "the body must be JSON in UTF-8, not deep and without NaN"
                raise ServingError(400, "bad_json", message) from None
        return self._json


class StrictRoute(APIRoute):
    """A route that reads a `StrictRequest` of type application/json."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        """What answers a request."""
        answer = super().get_route_handler()

        async def read(request: Request) -> Response:
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if request.method == "POST" and kind != "application/json":
                raise ServingError(415, "not_json", "the content type must be application/json")
            response: Response = await answer(StrictRequest(request.scope, request.receive))
            return response

        return read


router = APIRouter(prefix="/v1", route_class=StrictRoute, tags=["models"])


async def _ask(request: Request, job: str, body: requests.Ask) -> Response:
    values = body.model_dump(exclude={"model"})
    found = await service_of(request).ask(job, body.model, values)
    return Response(found, media_type="application/json")


@router.post("/score", response_model=answers.ScoreAnswer, responses=ERRORS)
async def score(request: Request, body: requests.ScoreRequest) -> Response:
    """The log-probability of each word of a text."""
    return await _ask(request, "score", body)


@router.post("/next", response_model=answers.NextAnswer, responses=ERRORS)
async def next_words(request: Request, body: requests.NextRequest) -> Response:
    """The words that may come after a prompt."""
    return await _ask(request, "next", body)


@router.post(
    "/generate",
    response_model=answers.GenerateAnswer,
    responses={
        **ERRORS,
        200: {"description": EVENTS, "content": {"text/event-stream": {}}},
    },
)
async def generate(request: Request, body: requests.GenerateRequest) -> Response:
    """Go on from a prompt until the sentence ends."""
    if not body.stream:
        return await _ask(request, "generate", body)
    values = body.model_dump(exclude={"model"})
    pieces = service_of(request).stream("generate_stream", body.model, values)
    first = await anext(pieces)  # what is refused is refused with its status
    return StreamingResponse(_events(first, pieces), media_type="text/event-stream")


async def _events(first: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Server-sent events: every piece but the last is a word."""
    last = first
    try:
        async for piece in pieces:
            yield b"event: word\ndata: " + last + b"\n\n"
            last = piece
        yield b"event: done\ndata: " + last + b"\n\n"
    except ServingError as error:
        yield b"event: error\ndata: " + error.body() + b"\n\n"


@router.post("/fill", response_model=answers.FillAnswer, responses=ERRORS)
async def fill(request: Request, body: requests.FillRequest) -> Response:
    """Words for the blank of a sentence."""
    return await _ask(request, "fill", body)


@router.post("/classify", response_model=answers.ClassifyAnswer, responses=ERRORS)
async def classify(request: Request, body: requests.ClassifyRequest) -> Response:
    """The class of a text."""
    return await _ask(request, "classify", body)


@router.post("/relate", response_model=answers.RelateAnswer, responses=ERRORS)
async def relate(request: Request, body: requests.RelateRequest) -> Response:
    """How the two marked entities of a sentence stand to each other."""
    return await _ask(request, "relate", body)


@router.post("/tag", response_model=answers.TagAnswer, responses=ERRORS)
async def tag(request: Request, body: requests.TagRequest) -> Response:
    """The tag of each word of a sentence, or the words of a text without blanks."""
    return await _ask(request, "tag", body)


@router.post("/summarize", response_model=answers.SummarizeAnswer, responses=ERRORS)
async def summarize(request: Request, body: requests.SummarizeRequest) -> Response:
    """The main sentences of a text, or what a network writes of it."""
    return await _ask(request, "summarize", body)


@router.post("/translate", response_model=answers.TranslateAnswer, responses=ERRORS)
async def translate(request: Request, body: requests.TranslateRequest) -> Response:
    """A text in the other language."""
    return await _ask(request, "translate", body)


@router.post("/answer", response_model=answers.AnswerAnswer, responses=ERRORS)
async def answer(request: Request, body: requests.AnswerRequest) -> Response:
    """The answer to a question, found in a passage."""
    return await _ask(request, "answer", body)


@router.post("/embed", response_model=answers.EmbedAnswer, responses=ERRORS)
async def embed(request: Request, body: requests.EmbedRequest) -> Response:
    """The vectors of words, and words that are alike."""
    return await _ask(request, "embed", body)


@router.get("/models", response_model=answers.ModelsAnswer, responses={401: ERRORS[401]})
async def models(request: Request) -> Response:
    """The models that are served."""
    return JSONResponse({"models": service_of(request).describe()})


operation = APIRouter(tags=["operation"])


@operation.get("/health", response_model=answers.StatusAnswer)
async def health(request: Request) -> Response:
    """Whether the app lives."""
    return JSONResponse({"status": "ok", "workers": service_of(request).ready()})


@operation.get(
    "/ready",
    response_model=answers.StatusAnswer,
    responses={503: {"model": answers.StatusAnswer, "description": "No worker is ready."}},
)
async def ready(request: Request) -> Response:
    """Whether requests can be answered: a worker has its models, and the server does not end."""
    workers = service_of(request).ready()
    status = {"status": "ready" if workers else "not ready", "workers": workers}
    return JSONResponse(status, 200 if workers else 503)


@operation.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, 401: ERRORS[401]},
)
async def metrics(request: Request) -> Response:
    """Counters and histograms, as Prometheus reads them."""
    return Response(service_of(request).metrics.text(), media_type=CONTENT_TYPE)


def create_app(service: Service) -> FastAPI:
    """The app of a service. Its pages are those of the studio; it asks no other host for anything.

    The documents of the API are at `/openapi.json`.
    """
    app = FastAPI(
        title="Seqloom",
        version=__version__,
        description="Sequence models over HTTP.",
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = service
    app.include_router(router)
    app.include_router(operation)
    _add_studio(app)
    pages = _add_pages(app)
    app.add_exception_handler(HTTPException, _told)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _fault)
    app.add_middleware(Guard, config=service.config, metrics=service.metrics, open_paths=pages)
    return app


def _add_studio(app: FastAPI) -> None:
    """Add what the studio asks besides the endpoints above, if it is there and can run here."""
    if find_spec("seqloom.serving.studio_api") is None:
        return
    try:
        app.include_router(import_module("seqloom.serving.studio_api").router)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "seqloom":
            raise
        _log.warning("the studio's own part is left out: %s is not installed", error.name)


def _add_pages(app: FastAPI) -> set[str]:
    """Give every file of the studio a path of its own; no other file has one."""
    if not STUDIO.is_dir():
        return set()
    static = StaticFiles(directory=STUDIO, html=True)
    files = {path.relative_to(STUDIO).as_posix() for path in STUDIO.rglob("*") if path.is_file()}
    places = {f"/{name}": name for name in files} | ({"/": "."} if "index.html" in files else {})
    for path, name in places.items():
        app.add_route(path, _page(static, name), methods=["GET"], include_in_schema=False)
    return set(places)


def _page(static: StaticFiles, name: str) -> Callable[[Request], Awaitable[Response]]:
    async def page(request: Request) -> Response:
        return await static.get_response(name, request.scope)

    return page


async def _told(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error, ServingError):
        body = error.body()
    else:
        phrase = HTTPStatus(error.status_code).phrase.lower()
        body = error_body(phrase.replace(" ", "_"), phrase)
    return Response(body, error.status_code, error.headers, media_type="application/json")


async def _invalid(_request: Request, error: Exception) -> Response:
    """What is wrong with a request, by the names of our own fields alone."""
    assert isinstance(error, RequestValidationError)
    told = "; ".join(dict.fromkeys(_problem(each) for each in error.errors()[:5]))
    return Response(error_body("invalid", told), 422, media_type="application/json")


def _problem(found: dict[str, Any]) -> str:
    kind = found["type"]
    if kind == "extra_forbidden":
        return "there is a field that is not known"
    place = ".".join(str(part) for part in found["loc"][1:] if isinstance(part, str)) or "the body"
    if kind == "missing":
        return f"{place} is missing"
    limits = " ".join(f"{k}={v}" for k, v in (found.get("ctx") or {}).items() if _is_limit(k))
    told = kind.replace("_", " ") + (f" ({limits})" if limits else "")
    return f"{place} is not right: {told}"


def _is_limit(name: str) -> bool:
    return name in ("ge", "gt", "le", "lt", "min_length", "max_length")


async def _fault(_request: Request, _error: Exception) -> Response:
    return Response(internal_error(), 500, media_type="application/json")

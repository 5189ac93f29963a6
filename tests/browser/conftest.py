"""One server and one browser for the tests of the studio."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from at_hand import missing

SWITCHES = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --disable-dev-shm-usage"
).split()
STARTING = 240.0  # seconds; a machine that never ran Seqloom compiles first


@pytest.fixture(scope="session")
def chromium() -> str:
    """Where Chromium is."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        missing("browser tests need Chromium: apt-get install chromium")
    assert found is not None
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        missing("browser tests need playwright: pip install playwright")
    return found


@pytest.fixture(scope="session")
def axe() -> str | None:
    """The program that looks for what people with disabilities stumble over, if it is here."""
    try:
        package = files("axe_playwright_python")
    except ModuleNotFoundError:
        return None
    return package.joinpath("axe.min.js").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Served:
    """A running server.

    Args:
        address: Where it listens.
        models: The folder of its models.
    """

    address: str
    models: Path


PATIENT = ("--max-wait", "30000")  # as `seqloom studio` has it


@pytest.fixture(scope="session")
def served(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of tiny models, on a port the system chooses."""
    pytest.importorskip("uvicorn")
    from studio_models import fit_models

    folder = tmp_path_factory.mktemp("studio")
    names = fit_models(folder)
    log = folder / "server.log"
    environment = {**os.environ, "SEQLOOM_RUNS": str(folder / "runs"), "OMP_NUM_THREADS": "1"}
    with log.open("w") as stream:
        server = subprocess.Popen(
            [sys.executable, "-m", "seqloom", "serve", *names, "--port", "0", *PATIENT],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
        )
        try:
            yield Served(_address(server, log), folder)
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _address(server: subprocess.Popen[bytes], log: Path) -> str:
    """Where a server listens, once it is ready."""
    until = time.monotonic() + STARTING
    while time.monotonic() < until and server.poll() is None:
        said = log.read_text(encoding="utf-8")
        if found := re.search(r" at (http://\S+)", said):
            address = found[1]
            with urllib.request.urlopen(f"{address}/ready", timeout=30) as answer:
                assert json.load(answer)["status"] == "ready"
            return address
        time.sleep(0.1)
    pytest.fail(f"the server did not start: {log.read_text(encoding='utf-8')[-2000:]}")


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    """A browser without windows. Of a module: while it lives, no event loop can be run."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=SWITCHES)
        yield opened
        opened.close()


@dataclass
class Person:
    """Somebody at the studio, and what went wrong meanwhile.

    Args:
        page: What they look at.
        language: What they read, "en" or "zh".
        served: The server.
    """

    page: Any
    language: str
    served: Served
    wrong: list[str] = field(default_factory=list)

    def open(self, view: str) -> Any:
        """Go to a view and wait for it."""
        self.page.goto(f"{self.served.address}/#/{view}")
        self.page.wait_for_selector("html[data-ready=yes] h1")
        return self.page

    def text(self, selector: str) -> str:
        """The text of an element, once it is there."""
        return str(self.page.locator(selector).first.inner_text())

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Ask the server without the page."""
        request = urllib.request.Request(
            f"{self.served.address}/{path}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


SIZES = {"en": {"width": 1360, "height": 900}, "zh": {"width": 375, "height": 760}}
THEMES = {"en": "light", "zh": "dark"}
LOCALES = {"en": "en-GB", "zh": "zh-CN"}


@pytest.fixture(params=["en", "zh"])
def person(
    request: pytest.FixtureRequest, browser: Any, served: Served, tmp_path: Path
) -> Iterator[Person]:
    """An English reader at a desk in the light, or a Chinese one with a phone in the dark.

    At the end nothing may have gone wrong, no request may have left the machine, and the page may
    not be wider than the screen. A picture of it is kept.
    """
    language = request.param
    context = browser.new_context(
        viewport=SIZES[language],
        color_scheme=THEMES[language],
        locale=LOCALES[language],
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.set_default_timeout(60_000)
    found = Person(page, language, served)

    def leaves(asked: Any) -> None:
        if not asked.url.startswith((served.address + "/", "blob:" + served.address)):
            found.wrong.append(f"a request left for {asked.url}")

    page.on("console", lambda m: found.wrong.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: found.wrong.append(str(error)))
    page.on("request", leaves)
    try:
        yield found
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(wide) <= 0, "the page is wider than the screen"
        folder = Path(os.environ.get("SEQLOOM_SCREENSHOTS") or tmp_path)
        folder.mkdir(parents=True, exist_ok=True)
        name = request.node.name.replace("[", "-").replace("]", "")
        page.screenshot(path=folder / f"{name}.png", full_page=True)
        assert not found.wrong
    finally:
        context.close()


@pytest.fixture
def is_accessible(person: Person, axe: str | None) -> Any:
    """Says what axe finds serious or critical on the page as it stands.

    Without axe it says nothing; `test_axe_is_at_hand` tells of that.
    """

    def look() -> None:
        if axe is None:
            return
        person.page.evaluate(axe)  # as the console would, so the page's own policy stays
        found = person.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        serious = [
            f"{each['id']}: {node['html'][:160]} {node['failureSummary']}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        ]
        assert not serious, "\n".join(serious)

    return look

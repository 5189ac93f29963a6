"""How soon the studio's first view can be used, from the moment the server is ready.

Run: python benchmarks/studio_first_view.py [--repeats 5]

It needs Chromium and playwright. Serves "textrank" on a port the system chooses, starts a browser,
and takes the time from asking for the page until its first form can be filled: with an empty cache,
as a person who comes for the first time has it.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import subprocess
import sys
import time

from playwright.sync_api import Browser, sync_playwright

SWITCHES = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def seconds_to_first_view(browser: Browser, address: str) -> float:
    context = browser.new_context()
    page = context.new_page()
    began = time.perf_counter()
    page.goto(address)
    page.wait_for_selector("html[data-ready=yes] #view form textarea")
    page.fill("#view form textarea", "One sentence. Another one.")
    took = time.perf_counter() - began
    context.close()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    command = [sys.executable, "-m", "seqloom", "serve", "textrank", "--port", "0"]
    began = time.perf_counter()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = ""
        while not (found := re.search(r"http://127\.0\.0\.1:\d+", said)):
            line = server.stderr.readline()
            assert line, f"the server ended: {said}"
            said += line
        print(f"the server is ready after {time.perf_counter() - began:.2f} s")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=SWITCHES
            )
            times = [seconds_to_first_view(browser, found[0]) for _ in range(repeats)]
            browser.close()
        server.terminate()
    print(
        f"first view usable after {times[0]:.2f} s at first, then {statistics.median(times):.2f} s "
        f"in the median of {repeats}"
    )


if __name__ == "__main__":
    main()

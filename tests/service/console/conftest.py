"""A browser, a service in a process of its own, and films that say what they show."""

import os
import shutil
from types import SimpleNamespace

import pytest

from service.console import films
from service.working import working

PATIENCE = 60_000
NAMES = ("chromium-headless-shell", "chromium")


@pytest.fixture(scope="module")
def browser():
    """Chromium; scoped to a module, as the loop it runs in is in the way of other tests."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = os.environ.get("FRAGDEX_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(
            f"no browser: none of {', '.join(NAMES)} is on the path, FRAGDEX_CHROMIUM names none "
            "(on Debian: apt-get install chromium-headless-shell)"
        )
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with working(tmp_path_factory.mktemp("served")) as served:
        yield served


@pytest.fixture(scope="session")
def film(tmp_path_factory):
    """Two films, and the folder for others."""
    folder = tmp_path_factory.mktemp("films")
    return SimpleNamespace(
        fragmented=films.film(folder / "fragmented.mp4", 1000, fragments="key"),
        progressive=films.film(folder / "progressive.mp4", 1000, sound=True),
        folder=folder,
    )


class Opened:
    """The console as a person uses it, and all that it asked for."""

    def __init__(self, page, served):
        self.page, self.served = page, served
        self.wrong, self.requests = [], []
        page.set_default_timeout(PATIENCE)
        # violations of the policy are told here as well
        page.on("console", self.logged)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("request", self.asked)
        page.goto(served.url + "/")

    def logged(self, message):
        if message.type == "error":
            self.wrong.append(f"{message.text}: {message.location['url']}")

    def asked(self, request):
        self.requests.append(request)

    def unlock(self, key=None):
        self.page.get_by_label("Key", exact=True).fill(key or self.served.key)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("heading", name="Library").wait_for()
        return self

    def choose(self, *paths):
        """Give files to the console, as its dialogue does."""
        self.page.set_input_files("#file", paths)

    def send(self, path):
        """Give a film to the console, and open it once its bytes are there."""
        self.choose(path)
        upload = self.page.locator(".upload", has_text=path.name)
        upload.get_by_role("link", name="Open").click()
        upload.get_by_role("button", name="Dismiss").click()
        self.ready(path.name)

    def view(self, name):
        """Go to a section and wait for its heading; gives the page."""
        self.page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()
        self.page.get_by_role("heading", level=1, name=name).wait_for()
        return self.page

    def open(self, name):
        """Open the newest film of this name from the library."""
        self.page.get_by_role("link", name="Library").first.click()
        self.page.get_by_role("link", name=name).first.click()
        self.ready(name)

    def ready(self, name):
        """Wait until a film is shown at its beginning."""
        self.page.get_by_role("heading", name=name).wait_for()
        self.page.locator("#film[data-state=ready]").wait_for()
        self.page.get_by_role("tab", name="Index").click()
        self.shown()

    def go_to(self, moment):
        self.page.get_by_label("Go to", exact=True).fill(moment)
        self.page.get_by_role("button", name="Seek").click()
        return self.shown()

    def shown(self):
        """(time, number of the picture) once a seek is over."""
        self.page.wait_for_function(
            "() => { const v = document.querySelector('video');"
            " return !v.seeking && v.readyState >= 2 &&"
            " document.querySelector('#film').dataset.state === 'ready'; }"
        )
        return self.page.evaluate("document.querySelector('video').currentTime"), self.number()

    def number(self):
        return self.page.evaluate(films.READ_NUMBER)

    def media(self):
        """Requests for bytes of tracks."""
        return [one for one in self.requests if "/tracks/" in one.url]


@pytest.fixture
def opened(browser, served):
    """The console, signed in; nothing may go wrong in it."""
    with browser.new_context(viewport={"width": 1280, "height": 1000}) as context:
        opened = Opened(context.new_page(), served).unlock()
        yield opened
        assert opened.wrong == []
        origins = {one.url.split("/")[2] for one in opened.requests if one.url.startswith("http")}
        assert origins == {served.url.split("/")[2]}

"""Debian's Chromium without a screen, and a project whose jobs end when a test lets them."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from boinc_gahp.cli.local_project import local_page
from boinc_gahp.localproject.backend.create_work import NewJob, stage_file
from boinc_gahp.localproject.project import LocalProject
from tests.localproject.batches import made_batch

CHROMIUM = Path("/usr/bin/chromium")
DRIVER = Path("/usr/bin/chromedriver")
DESKTOP = (1280, 800)
PHONE = (360, 740)

# It waits for the file that its argument names; an argument that begins with "bad" makes it fail.
_GATED = """
import pathlib, sys, time
gate = sys.argv[1]
while not pathlib.Path("{gates}", gate).exists():
    time.sleep(0.02)
if gate.startswith("bad"):
    sys.exit("no <b>convergence</b> after 500 iterations")
pathlib.Path("out").write_text(pathlib.Path("in").read_text().upper())
"""


class Browser:
    """A browser at a project's page.

    Attributes:
        driver: Selenium's.
        downloads: where files are saved.
    """

    def __init__(self, driver, downloads):
        self.driver = driver
        self.downloads = downloads

    def command(self, name, **arguments):
        """Use the DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, arguments)

    def script(self, text):
        """Return the value of an expression."""
        return self.driver.execute_script(f"return {text}")

    def resize(self, size):
        """Be a window or a phone of that size."""
        width, height = size
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])

    def complaints(self):
        """Return what the console has said, and requests that were not for this machine."""
        said = [entry["message"] for entry in self.driver.get_log("browser")]
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if not url.startswith(("http://127.0.0.1:", "data:")):
                    said.append(f"a request to {url}")
        return said


@pytest.fixture(scope="module")
def chrome(tmp_path_factory):
    """A browser; it ends with the module, for tests in others count this process's children."""
    missing = [str(path) for path in (CHROMIUM, DRIVER) if not path.exists()]
    if missing and os.environ.get("CI") == "true":
        pytest.fail(f"not installed: {', '.join(missing)} (Debian: chromium, chromium-driver)")
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    base = tmp_path_factory.mktemp("chromium")
    downloads = base / "downloads"
    downloads.mkdir()
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        f"--user-data-dir={base / 'profile'}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        browser = Browser(driver, downloads)
        browser.command(
            "Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads)
        )
        yield browser
    finally:
        driver.quit()
        shutil.rmtree(base / "profile", ignore_errors=True)


@pytest.fixture
def browser(chrome):
    """The browser, a window on a desk, without cookies; it must have nothing to complain of."""
    chrome.driver.get("about:blank")
    chrome.driver.delete_all_cookies()
    chrome.command("Network.clearBrowserCookies")
    chrome.resize(DESKTOP)
    chrome.complaints()
    yield chrome
    chrome.command("Emulation.setScriptExecutionDisabled", value=False)
    assert chrome.complaints() == []


class Gated:
    """A project with an app named gated, and the gates that its jobs wait for.

    Attributes:
        project: the project.
        page: its page's address.
    """

    def __init__(self, project, page, gates):
        self.project = project
        self.page = page
        self._gates = gates

    def open(self, gate):
        """Let the jobs go on that wait for ``gate``."""
        (self._gates / gate).touch()

    def submit(self, name, gate, jobs=1):
        """Make a batch whose jobs wait for ``gate``; return its id."""
        core = self.project.core
        file = stage_file(core, b"said once\n", "data.txt")
        job = NewJob(files=(file,), command_line=gate, max_error_results=1)
        named = [replace(job, name=f"{name}_{number}") for number in range(jobs)]
        return made_batch(core, name, named, app_name="gated")


@pytest.fixture(scope="module")
def gated(tmp_path_factory):
    base = tmp_path_factory.mktemp("gated")
    gates = base / "gates"
    gates.mkdir()
    with LocalProject(base / "project", hosts=2) as project:
        project.add_app(
            "gated",
            command=["{python}", "-I", "-S", "-c", _GATED.replace("{gates}", str(gates))],
            inputs="in",
            outputs="out",
        )
        with local_page(project) as page:
            yield Gated(project, page, gates)

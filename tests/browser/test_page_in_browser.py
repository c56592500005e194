"""The project's page in a real browser: it renews itself, and everything on it can be used."""

from __future__ import annotations

import zipfile
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import ActionChains, Keys

from boinc_gahp.localproject import LocalProject
from boinc_gahp.localproject.web import sign_in_link
from tests.browser.conftest import PHONE
from tests.helpers import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from selenium.webdriver.remote.webelement import WebElement

    from tests.browser.conftest import Browser, Gated

PAGES = ("", "batches/{batch}", "jobs/{job}", "hosts", "programs", "apps", "submit", "sign-in")


class Person:
    """Somebody at the browser."""

    def __init__(self, browser: Browser, project: LocalProject) -> None:
        self.browser = browser
        self.project = project

    def go(self, path: str = "") -> None:
        self.browser.driver.get(self.project.url + path)

    def find(self, selector: str) -> WebElement:
        return self.browser.driver.find_element("css selector", selector)

    def sees(self, words: str, selector: str = "main") -> None:
        """Wait until some words stand on the page."""

        def there() -> bool:
            # Between two pages there is nothing to find, or it is gone already.
            with suppress(WebDriverException):
                return words in " ".join(self.find(selector).text.split())
            return False

        wait_for(there, f"{words!r} on the page")

    def value(self, expression: str) -> str:
        """Return what a script finds on the page."""
        return str(self.browser.script(expression))

    def click(self, selector: str) -> None:
        """Click on something; what is found may be renewed before it is clicked on."""

        def clicked() -> bool:
            with suppress(WebDriverException):
                self.find(selector).click()
                return True
            return False

        wait_for(clicked, f"{selector} to click on")

    def sign_in(self) -> None:
        self.browser.driver.get(sign_in_link(self.project.core))
        self.click("main button")
        self.sees("Signed in as submitter.")

    def submit(self, name: str, gate: str, file: Path, jobs: int = 1) -> int:
        """Submit a batch of the app gated through the form; return its id."""
        self.go("submit?app=gated")
        self.find("#batch_name").send_keys(name)
        self.find("#file_0").send_keys(str(file))
        self.find("#command_line").send_keys(gate)
        self.find("#jobs").clear()
        self.find("#jobs").send_keys(str(jobs))
        self.click("main form button")
        wait_for(lambda: "/batches/" in self.browser.driver.current_url, "the batch's page")
        return int(self.browser.driver.current_url.rpartition("/")[2])


@pytest.fixture
def person(browser: Browser, gated: Gated) -> Person:
    return Person(browser, gated.project)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data.txt"
    path.write_text("said once\n")
    return path


def test_a_batch_is_submitted_watched_and_its_outputs_are_saved(
    person: Person, gated: Gated, file: Path
) -> None:
    person.sign_in()
    person.submit("watched", "first", file, jobs=2)
    person.sees("Submitted 2 jobs.")
    person.sees("2 running")
    person.browser.script("window.here = true")
    gated.open("first")
    person.sees("2 done")
    person.sees("complete")
    assert person.browser.script("window.here") is True
    person.click("a[href$='outputs.zip']")
    saved = person.browser.downloads / "watched.zip"
    wait_for(saved.exists, "the saved file")
    with zipfile.ZipFile(saved) as archive:
        assert [archive.read(name) for name in archive.namelist()] == [b"SAID ONCE\n"] * 2


def test_what_people_do_at_the_page_outlasts_its_renewal(
    person: Person, gated: Gated, file: Path
) -> None:
    person.sign_in()
    person.submit("long", "second", file, jobs=8)
    person.sees("2 running")
    person.browser.resize((1280, 300))
    person.click("#tick-" + person.value("document.querySelector('tbody tr:nth-child(7)').id")[4:])
    person.click("#retire summary")
    person.find("#find-name").send_keys("typed")
    person.browser.script("window.scrollTo(0, 150)")
    before = person.browser.script("[scrollY, document.activeElement.id]")
    assert before == [150, "find-name"]
    gated.open("second")
    person.sees("done", ".counts")
    person.sees("8 done")
    assert person.browser.script("[scrollY, document.activeElement.id]") == before
    assert person.browser.script("document.querySelector('#find-name').value") == "typed"
    assert person.browser.script("document.querySelector('#retire').open") is True


def test_nothing_is_wider_than_a_phone(person: Person, gated: Gated, file: Path) -> None:
    person.sign_in()
    name = "a-name-of-no-end-" * 6
    batch_id = person.submit(name, "bad-third-" + "x" * 90, file)
    gated.open("bad-third-" + "x" * 90)
    person.browser.resize(PHONE)
    person.sees("1 failed")
    connection = person.project.core.db.connection()
    [job_id] = connection.execute("SELECT id FROM workunit WHERE batch = ?", (batch_id,)).fetchone()
    for path in PAGES:
        person.go(path.format(batch=batch_id, job=job_id))
        assert person.browser.script("document.documentElement.scrollWidth") == PHONE[0], path
        person.browser.script("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert person.browser.script("document.documentElement.scrollWidth") == PHONE[0], path


def test_everything_works_without_scripts(person: Person, gated: Gated, file: Path) -> None:
    person.browser.command("Emulation.setScriptExecutionDisabled", value=True)
    person.browser.driver.get(sign_in_link(person.project.core))
    person.click("main button")
    person.sees("Signed in as submitter.")
    person.go("submit?app=gated")
    person.click("main form button")
    person.sees("no file was given")
    person.browser.complaints()  # The console tells of every answer that is an error's.
    person.find("#file_0").send_keys(str(file))
    person.find("#command_line").send_keys("fourth")
    person.click("main form button")
    person.sees("Submitted 1 job.")
    person.click("#abort summary")
    person.click("#abort button")
    person.sees("was aborted")
    person.click("noscript a")
    person.sees("it was aborted")
    gated.open("fourth")


def test_the_keyboard_is_enough_to_reach_a_batch(person: Person, file: Path) -> None:
    person.sign_in()
    person.go()
    ActionChains(person.browser.driver).send_keys(Keys.TAB, Keys.ENTER).perform()
    assert person.browser.script("document.activeElement.id") == "main"
    reached = []
    for _ in range(30):
        ActionChains(person.browser.driver).send_keys(Keys.TAB).perform()
        reached.append(person.browser.script("document.activeElement.getAttribute('href')"))
    assert any(str(href).startswith("/test/batches/") for href in reached)
    outline = person.browser.script("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_a_project_that_is_gone_is_noticed_and_its_return_too(
    browser: Browser, tmp_path: Path
) -> None:
    notice = "document.querySelector('#connection').innerText.trim()"
    with LocalProject(tmp_path / "p", hosts=0) as project:
        person = Person(browser, project)
        person.sign_in()
        port = project.port
    person.sees("The project does not answer any more. The page shows the state of")
    assert "No batch yet" in person.find("#live").text
    browser.complaints()  # The console tells of each request that fails.
    with LocalProject(tmp_path / "p", port=port, hosts=0) as project:
        project.add_user("newcomer")
        person.sees("Batches")
        wait_for(lambda: person.value(notice) == "", "an end of the notice")
        browser.complaints()
        person.go("submit")
        person.sees("Submit a batch")


def test_a_page_that_nobody_looks_at_asks_for_nothing(person: Person) -> None:
    person.go()
    person.browser.script("window.asked = 0")
    person.browser.driver.execute_script(
        """
        const fetched = window.fetch;
        window.fetch = (...all) => { window.asked += 1; return fetched(...all); };
        Object.defineProperty(document, "hidden", { get: () => window.away, configurable: true });
        window.away = true;
        document.dispatchEvent(new Event("visibilitychange"));
        """
    )
    later = person.browser.driver.execute_async_script(
        "const tell = arguments[0]; setTimeout(() => tell(window.asked), 2600);"
    )
    assert later == 0
    person.browser.driver.execute_script(
        "window.away = false; document.dispatchEvent(new Event('visibilitychange'));"
    )
    assert person.browser.script("window.asked") == 1

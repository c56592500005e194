"""The project's page in a real browser: it renews itself, and all of it can be seen."""

from contextlib import suppress

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import ActionChains, Keys

from boinc_gahp.cli.local_project import local_page
from boinc_gahp.localproject.backend import batches
from boinc_gahp.localproject.project import LocalProject
from tests.browser.conftest import PHONE
from tests.helpers import wait_for
from tests.inside import down, rows

PAGES = ("", "0/{batch}", "0/{batch}/{job}", "more/Hosts", "more/Back end", "9/9")


class Person:
    """Somebody at the browser."""

    def __init__(self, browser, page):
        self.browser = browser
        self.page = page

    def go(self, path=""):
        self.browser.driver.get(self.page + path)

    def find(self, selector):
        return self.browser.driver.find_element("css selector", selector)

    def sees(self, words, selector="main"):
        """Wait until some words stand on the page."""

        def there():
            # Between two pages there is nothing to find, or it is gone already.
            with suppress(WebDriverException):
                return words in " ".join(self.find(selector).text.split())
            return False

        wait_for(there, f"{words!r} on the page")

    def value(self, expression):
        """Return what a script finds on the page."""
        return str(self.browser.script(expression))

    def click(self, selector):
        """Click on something; what is found may be renewed before it is clicked on."""

        def clicked():
            with suppress(WebDriverException):
                self.find(selector).click()
                return True
            return False

        wait_for(clicked, f"{selector} to click on")


@pytest.fixture
def person(browser, gated):
    return Person(browser, gated.page)


def test_a_batch_is_watched_and_an_output_is_saved(person, gated):
    batch_id = gated.submit("watched", "first", jobs=2)
    person.go(f"0/{batch_id}")
    person.sees("2 running")
    person.browser.script("window.here = true")
    gated.open("first")
    person.sees("2 done")
    person.sees("complete")
    assert person.browser.script("window.here") is True
    person.click("tbody a")
    person.sees("this one counts")
    person.click("#job h3 a")
    person.sees("SAID ONCE")
    person.click("a[download]")
    saved = person.browser.downloads / "watched_0_out"
    wait_for(saved.exists, "the saved file")
    assert saved.read_bytes() == b"SAID ONCE\n"


def test_what_people_do_at_the_page_outlasts_its_renewal(person, gated):
    person.go(f"0/{gated.submit('long', 'second', jobs=8)}")
    person.sees("2 running")
    person.browser.resize((1280, 300))
    person.browser.script("document.querySelectorAll('tbody a')[1].focus()")
    person.browser.script("window.scrollTo(0, 150)")
    before = person.browser.script("[scrollY, document.activeElement.textContent]")
    assert before == [150, "long_1"]
    gated.open("second")
    person.sees("done", ".counts")
    person.sees("8 done")
    assert person.browser.script("[scrollY, document.activeElement.textContent]") == before


def test_nothing_is_wider_than_a_phone(person, gated):
    gate = "bad-third-" + "x" * 90
    batch_id = gated.submit("a-name-of-no-end-" * 6, gate)
    gated.open(gate)
    person.browser.resize(PHONE)
    person.go(f"0/{batch_id}")
    person.sees("1 failed")
    [[job_id]] = rows(gated.project, "SELECT id FROM workunit WHERE batch = ?", batch_id)
    for path in PAGES:
        person.go(path.format(batch=batch_id, job=job_id))
        assert person.browser.script("document.documentElement.scrollWidth") == PHONE[0], path
        person.browser.script("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert person.browser.script("document.documentElement.scrollWidth") == PHONE[0], path
    person.browser.complaints()  # The console tells of an answer that is an error's.


def test_everything_works_without_scripts(person, gated):
    person.browser.command("Emulation.setScriptExecutionDisabled", value=True)
    person.go(f"0/{gated.submit('still', 'fourth')}")
    gated.open("fourth")
    query = "SELECT count(*) FROM workunit WHERE name = 'still_0' AND canonical_resultid != 0"
    wait_for(lambda: rows(gated.project, query)[0][0], "the job's end")

    def renewed():
        person.click("noscript a")
        return "1 done" in person.find("main").text

    wait_for(renewed, "the job's end on the page", pause=0.5)


def test_the_keyboard_is_enough_to_reach_a_batch(person, gated):
    gated.submit("reached", "fifth")
    person.go()
    person.sees("reached")
    ActionChains(person.browser.driver).send_keys(Keys.TAB, Keys.ENTER).perform()
    assert person.browser.script("document.activeElement.id") == "main"
    reached = []
    for _ in range(30):
        ActionChains(person.browser.driver).send_keys(Keys.TAB).perform()
        reached.append(person.browser.script("document.activeElement.getAttribute('href')"))
    assert any(str(href).startswith("/0/", 33) for href in reached)
    outline = person.browser.script("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_an_end_of_the_page_is_noticed_and_of_the_project(browser, tmp_path):
    with LocalProject(tmp_path / "p", hosts=0) as project:
        with local_page(project) as page:
            person = Person(browser, page)
            person.go()
            person.sees("No batch yet")
            with down(project):
                person.sees("submitter cannot be asked now: ")
            wait_for(lambda: "cannot be asked" not in person.find("#live").text, "its end")
        person.sees("boinc_gahp does not answer any more: was it ended?")
        assert "No batch yet" in person.find("#live").text
    browser.complaints()  # The console tells of each request that fails.


def test_a_job_is_found_among_thousands_with_the_keyboard(person, gated):
    batch_id = gated.submit("many", "never", jobs=300)
    person.go(f"0/{batch_id}")
    person.sees("1–100 of 300")
    person.find("input[type=search]").send_keys("many_29")
    person.browser.script("window.here = true")
    person.find("input[type=search]").send_keys("9", Keys.ENTER)
    person.sees("many_299")
    assert len(person.browser.driver.find_elements("css selector", "tbody tr")) == 1
    with gated.project.core.db.write() as connection:
        batches.abort(connection, batch_id)
    person.sees("failed", "tbody")


def test_a_page_that_nobody_looks_at_asks_for_nothing(person):
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

"""Terms are explained to everyone: by mouse, keyboard, touch, without script, and on paper."""

from __future__ import annotations

from tests.report.browsing import Visit

from heckmanfa.report.glossary import TERMS, Glossary

TIP = "#tip"


def meaning(page):
    """What the list of words says of the first term."""
    term = page.locator("a.term").first
    return term, page.locator(term.get_attribute("href")).text_content()


def test_a_term_explains_itself_on_hover_and_on_focus(browser, file_of):
    with Visit(browser, file_of("average")) as page:
        term, means = meaning(page)
        term.hover()
        assert page.locator(TIP).text_content() == means
        page.mouse.move(1, 1)
        assert not page.locator(TIP).is_visible()
        term.focus()
        assert page.locator(TIP).is_visible()
        assert page.locator(TIP).text_content() == means
        page.keyboard.press("Escape")
        assert not page.locator(TIP).is_visible()


def test_a_tap_explains_a_term_and_stays_where_it_is(browser, file_of):
    with Visit(browser, file_of("average"), 390, 844, is_mobile=True, has_touch=True) as page:
        term, means = meaning(page)
        term.tap()
        assert page.locator(TIP).text_content() == means
        assert page.evaluate("location.hash") == ""
        assert page.evaluate("scrollY") < 844


def test_without_script_a_term_leads_to_the_list(browser, file_of):
    with Visit(browser, file_of("average"), java_script_enabled=False) as page:
        term, means = meaning(page)
        term.click()
        assert page.url.endswith(term.get_attribute("href"))
        listed = page.locator("dl.glossary dd:target")
        assert listed.text_content() == means


def test_the_list_of_words_is_printed(browser, file_of):
    with Visit(browser, file_of("average")) as page:
        page.emulate_media(media="print")
        assert page.locator("dl.glossary dd").first.is_visible()


def test_only_words_between_tags_are_marked_and_each_once_in_a_section():
    glossary = Glossary()
    first, second = glossary.mark(
        ["<h2>rho</h2><p><b>rho</b> rho and RHO</p>", '<p title="BIC">rho, BIC</p>']
    )
    link = '<a class="term" href="#term-rho" aria-describedby="term-rho">rho</a>'
    assert first == f"<h2>rho</h2><p><b>rho</b> {link} and RHO</p>"
    assert second.startswith('<p title="BIC">rho, <a class="term" href="#term-BIC"')
    assert glossary.used == {"rho", "BIC"}
    assert "<dt>lambda</dt>" not in glossary.listed()


def test_words_that_explain_are_short():
    for term in TERMS:
        assert len(term.means) <= 200
        assert term.means.endswith(".")

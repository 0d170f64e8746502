"""Waits for charts: plotly.js is fetched once one of them comes near the visible part of the page."""

from playwright.sync_api import Page, expect


def wait_for_charts(page: Page, count: int | None = None) -> None:
    """Return when all charts of the page are drawn, and the page is where it was."""
    areas = page.locator(".chart-area")
    if count is not None:
        expect(areas).to_have_count(count)
    place = page.evaluate("scrollY")
    shown = areas.filter(visible=True)
    if not shown.count():
        return
    shown.first.scroll_into_view_if_needed()
    expect(page.locator(".chart-area:not(.drawn)")).to_have_count(0)
    page.evaluate("place => scrollTo({ top: place, behavior: 'instant' })", place)

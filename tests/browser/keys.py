"""Pressing a key as a person would: once the page, with its scripts, is there to hear it."""

from playwright.sync_api import Page


def press(page: Page, key: str) -> None:
    page.wait_for_load_state()
    page.keyboard.press(key)

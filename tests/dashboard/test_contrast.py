"""The colour tokens: readable text in both themes, and families of colours that colour-blind readers can tell apart."""

import itertools
import re
from pathlib import Path

import pytest

TOKENS = Path(__file__).parents[2] / "static" / "css" / "tokens.css"
THEMES = ("light", "dark")
SURFACES = ("paper", "card", "raised", "sunken")
LEVELS = ("ok", "warning", "error", "auto", "blocking")
TOKEN_KINDS = ("read", "write5m", "write1h", "fresh", "output")

CONTEXT_PARTS = tuple(
    f"part-{name}"
    for name in (
        "results", "requests", "system", "assistant", "thinking", "user", "summary", "attachments", "other",
    )
)  # fmt: skip

MARGIN = 15  # CIE76; 2.3 is just noticeable side by side, areas in a chart lie apart

Rgb = tuple[float, float, float]

# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB.
EYES = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}


def _read_tokens() -> dict[str, tuple[str, str]]:
    pairs = re.findall(r"--([\w-]+):\s*light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", TOKENS.read_text())
    return {name: (light, dark) for name, light, dark in pairs}


COLOURS = _read_tokens()


def _linear(token: str, theme: str) -> Rgb:
    value = COLOURS[token][THEMES.index(theme)]
    red, green, blue = (int(value[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return (_straight(red), _straight(green), _straight(blue))


def _straight(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)


def _luminance(colour: Rgb) -> float:
    return 0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2]


def contrast(one: str, other: str, theme: str) -> float:
    low, high = sorted((_luminance(_linear(one, theme)), _luminance(_linear(other, theme))))
    return (high + 0.05) / (low + 0.05)


def _lab(colour: Rgb) -> Rgb:
    red, green, blue = (min(max(part, 0.0), 1.0) for part in colour)
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883
    fx, fy, fz = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in (x, y, z))
    return (116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz))


def seen_distance(one: str, other: str, theme: str, eyes: str) -> float:
    """CIE76 distance as those eyes see it."""
    labs = []
    for token in (one, other):
        colour = _linear(token, theme)
        red, green, blue = (sum(a * b for a, b in zip(row, colour, strict=True)) for row in EYES[eyes])
        labs.append(_lab((red, green, blue)))
    return float(sum((a - b) ** 2 for a, b in zip(*labs, strict=True)) ** 0.5)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("text", ["ink", "ink-2", "ink-3", "accent", "accent-strong", *LEVELS])
def test_text_is_readable_on_every_surface(text: str, theme: str) -> None:
    assert {
        surface: contrast(text, surface, theme) for surface in SURFACES if contrast(text, surface, theme) < 4.5
    } == {}


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    ("text", "behind"),
    [
        *((level, f"{level}-soft") for level in LEVELS),
        *(("ink", f"{level}-soft") for level in LEVELS),
        *(("ink", part) for part in CONTEXT_PARTS),
        ("ink", "accent-soft"),
        ("ink-2", "accent-soft"),
        ("ink-3", "accent-soft"),
        ("accent", "accent-soft"),
        ("on-accent", "accent"),
        ("on-accent", "accent-strong"),
        ("on-accent", "blocking"),
        ("paper", "ink"),
        ("add-ink", "add"),
        ("del-ink", "del"),
    ],
)
def test_text_is_readable_on_its_own_ground(text: str, behind: str, theme: str) -> None:
    assert contrast(text, behind, theme) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("mark", ["edge", "loss", *(f"{level}-fill" for level in LEVELS), *TOKEN_KINDS])
def test_control_borders_and_coloured_areas_stand_out(mark: str, theme: str) -> None:
    assert contrast(mark, "card", theme) >= 3


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    "family",
    [tuple(f"{level}-fill" for level in LEVELS), TOKEN_KINDS, ("loss", "write5m", "output"), ("loss", "read")],
    ids=["levels", "token kinds", "dollars", "marks on calls"],
)
def test_colours_of_a_family_can_be_told_apart(family: tuple[str, ...], theme: str, eyes: str) -> None:
    pairs = itertools.combinations(family, 2)
    close = {pair: distance for pair in pairs if (distance := seen_distance(*pair, theme, eyes)) < MARGIN}
    assert close == {}

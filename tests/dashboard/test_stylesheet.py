"""Contrast of the stylesheet's colours (WCAG 2.2, criteria 1.4.3 and 1.4.11)."""

import re
from pathlib import Path

import pytest

STYLESHEET = Path(__file__).parents[2] / "app" / "dashboard" / "static" / "corevault.css"
COLOURS = {
    name: (light, dark)
    for name, light, dark in re.findall(
        r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", STYLESHEET.read_text()
    )
}
PAPERS = ("paper", "raised")
TEXT = [
    *((text, paper) for text in ("ink", "soft", "accent", "accent-hover", "danger") for paper in PAPERS),
    *(("on-accent", button) for button in ("accent", "accent-hover")),
    *((text, f"{text}-paper") for text in ("danger", "good")),
    *(("ink", paper) for paper in ("danger-paper", "good-paper", "warn-paper", "room")),
    *(("soft", paper) for paper in ("danger-paper", "good-paper", "warn-paper")),
    ("reserved", "warn-paper"),
]
GRAPHICS = [
    *((graphic, "paper") for graphic in ("spent", "reserved", "danger", "edge", "focus", "good")),
    *((graphic, "raised") for graphic in ("edge", "focus")),
    ("spent", "room"),
    ("reserved", "room"),
]


def _luminance(colour: str) -> float:
    channels = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(first: str, second: str) -> float:
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_the_contrast_of_black_on_white_is_21() -> None:
    assert _contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("text", "paper"), TEXT, ids="-".join)
def test_text_has_enough_contrast(text: str, paper: str, scheme: int) -> None:
    assert _contrast(COLOURS[text][scheme], COLOURS[paper][scheme]) >= 4.5


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("graphic", "paper"), GRAPHICS, ids="-".join)
def test_graphics_and_controls_have_enough_contrast(graphic: str, paper: str, scheme: int) -> None:
    assert _contrast(COLOURS[graphic][scheme], COLOURS[paper][scheme]) >= 3


def test_forced_colours_and_reduced_motion_are_respected() -> None:
    text = STYLESHEET.read_text()
    for condition in ("forced-colors: active", "prefers-reduced-motion", "prefers-contrast: more", "@media print"):
        assert condition in text
    assert "outline: none" not in text.replace("main:focus { outline: none; }", "")


def test_every_property_that_is_used_is_defined() -> None:
    text = STYLESHEET.read_text()
    used = set(re.findall(r"var\(--([a-z-]+)", text))
    assert used - set(re.findall(r"--([a-z-]+):", text)) == set()

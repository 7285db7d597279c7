"""Sample inputs: what each model is made to see, drawn from a seed. Nothing is read from disk."""

from __future__ import annotations

import numpy as np

WORDS = ("Relay 2024", "Fusion 317", "Graph 560", "Layout 48")
VOCABULARY = 1000
"""How many tokens the encoder knows."""
PATTERNS = np.random.default_rng(0).standard_normal((10, 256)).astype(np.float32)
"""What the early-exit network tells apart: one pattern for each of ten classes."""
_FONT = 34.0  # pixels: fills the 48 rows that the OCR models take


def image(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Smooth coloured waves with a little noise: (N, 3, H, W), float32, about -3 to 3.

    Pure noise would be averaged away by the pooling layers: all inputs would look alike.
    """
    rng = np.random.default_rng(seed)
    n, channels, height, width = shape
    y, x = np.linspace(0, 1, height)[:, None], np.linspace(0, 1, width)
    out = 0.1 * rng.standard_normal(shape)
    for _ in range(6):
        amplitude, phase, down, across = rng.uniform(-1, 1, (4, n, channels, 1, 1))
        out += amplitude * np.sin(2 * np.pi * (4 * down * y + 4 * across * x + phase))
    return out.astype(np.float32)


def channels_last(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """The same picture as (N, H, W, 3), in the range -1 to 1 that the TFLite models expect."""
    n, height, width, channels = shape
    waves = np.tanh(image((n, channels, height, width), seed))
    return np.ascontiguousarray(waves.transpose(0, 2, 3, 1))


def text(seed: int) -> str:
    """The words that :func:`text_line` shows for this seed."""
    return WORDS[seed % len(WORDS)]


def _written(words: str, width: int, height: int) -> np.ndarray:
    """Black words in the middle of a white picture, scaled to -1 .. 1."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("L", (width, height), 255)
    font = ImageFont.load_default(_FONT)
    place = (width // 2, height // 2)
    ImageDraw.Draw(picture).text(place, words, fill=0, font=font, anchor="mm")
    return np.asarray(picture, np.float32) / 127.5 - 1.0


def page(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """A white page with the words ``text(seed)`` in the middle: (1, 3, H, W) float32, -1 to 1."""
    return np.broadcast_to(_written(text(seed), shape[3], shape[2]), shape).copy()


def text_line(shape: tuple[int, ...], seed: int, turned: bool = False) -> np.ndarray:
    """A line of text cut out of a page, as PP-OCR is fed: (N, 3, H, W) float32, -1 to 1.

    Line ``i`` of a batch shows ``text(seed + i)``, on the left; grey (0) fills what remains.
    ``turned`` rotates the line by 180 degrees.
    """
    from PIL import ImageFont

    n, _, height, width = shape
    out = np.zeros(shape, np.float32)
    for i in range(n):
        words = text(seed + i)
        needed = int(ImageFont.load_default(_FONT).getlength(words)) + 10
        line = _written(words, min(needed, width), height)
        out[i, :, :, : line.shape[1]] = line[::-1, ::-1] if turned else line
    return out


def upside_down_line(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """:func:`text_line`, upside down where the seed is odd."""
    return text_line(shape, seed, turned=bool(seed % 2))


def source_file(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """A Python file's first and last 1024 bytes, as magika reads a file: (N, 2048) int32."""
    rows = []
    for i in range(shape[0]):
        rng = np.random.default_rng([seed, i])
        lines = ["import math", ""]
        while sum(map(len, lines)) < 3000:
            a, b = rng.integers(1, 1000, 2)
            lines += [f"def area_{a}(radius):", f"    return {b} * math.pi * radius**2", ""]
        content = "\n".join(lines).strip().encode()
        rows.append(np.frombuffer(content[:1024] + content[-1024:], np.uint8))
    return np.stack(rows).astype(np.int32)


def sound(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """A sung vowel at 16 kHz: harmonics of one pitch, the upper ones weaker: (1, samples)."""
    rng = np.random.default_rng(seed)
    seconds = np.arange(shape[-1]) / 16000
    pitch = rng.uniform(100, 250)
    waves = [np.sin(2 * np.pi * pitch * k * seconds) / k for k in range(1, 20)]
    noise = 0.01 * rng.standard_normal(shape)
    return (0.2 * np.sum(waves, axis=0) + noise).astype(np.float32)


def state(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """A recurrent state as after some steps: small random numbers."""
    return (0.1 * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)


def tokens(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Tokens, each as likely as any other: (1, length) int64."""
    return np.random.default_rng(seed).integers(0, VOCABULARY, shape)


def mask(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """1 where there is a token, 0 for the padding in the last quarter or so: (1, length)."""
    padding = shape[1] // 4 - seed % 2
    return (np.arange(shape[1]) < shape[1] - max(0, padding)).astype(np.float32)[None]


def noise(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Independent normal numbers, as an encoder that ends in a normalisation gives them."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def pattern(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Pattern ``seed // 2`` modulo 10 with a little noise; where the seed is odd, the mean of it
    and the next one, of which a classifier cannot be sure: (1, 256).
    """
    first = seed // 2 % len(PATTERNS)
    second = (first + seed % 2) % len(PATTERNS)
    return (PATTERNS[first] + PATTERNS[second]) / 2 + np.float32(0.2) * noise(shape, seed)

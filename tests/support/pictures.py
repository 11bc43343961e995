"""A picture of a page in at most 256 colours, which is a third of what a browser writes and looks the same."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np

_PIXELS = """async picture => {
    const bytes = Uint8Array.from(atob(picture), letter => letter.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], {type: "image/png"}));
    const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
    context.drawImage(image, 0, 0);
    const data = context.getImageData(0, 0, image.width, image.height).data;
    let text = "";
    for (let at = 0; at < data.length; at += 32768) text += String.fromCharCode(...data.subarray(at, at + 32768));
    return [image.width, image.height, btoa(text)];
}"""


def reduced(browser: Any, png: bytes) -> bytes:
    """The browser takes the picture apart; nothing else here can."""
    page = browser.new_page()
    width, height, text = page.evaluate(_PIXELS, base64.b64encode(png).decode())
    page.close()
    pixels = np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4)[:, :, :3]
    colours, which, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
    palette = _palette(colours.astype(np.int32), counts)
    apart = ((colours[:, None, :].astype(np.int32) - colours[palette][None, :, :]) ** 2).sum(axis=2)
    rows = apart.argmin(axis=1)[which.reshape(-1)].astype(np.uint8).reshape(height, width)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1)  # each begins with its filter: none
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = (
        (b"IHDR", header),
        (b"PLTE", colours[palette].tobytes()),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, body) for name, body in parts)


def _palette(colours: Any, counts: Any) -> Any:
    """The colours that are seen most, and then whichever is farthest from all that are kept."""
    if len(colours) <= 256:
        return np.arange(len(colours))
    palette = list(np.argsort(counts)[::-1][:96])
    near = ((colours[:, None, :] - colours[palette][None, :, :]) ** 2).sum(axis=2).min(axis=1)
    while len(palette) < 256:
        palette.append(int((near * np.log1p(counts)).argmax()))
        near = np.minimum(near, ((colours - colours[palette[-1]]) ** 2).sum(axis=1))
    return np.array(palette)


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

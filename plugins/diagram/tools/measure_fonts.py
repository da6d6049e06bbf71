"""Writes font_widths.json: how wide each character of Excalidraw's fonts is.

    npm install @excalidraw/excalidraw
    pip install fonttools brotli
    python measure_fonts.py node_modules/@excalidraw/excalidraw/dist/prod/fonts

To run again only when Excalidraw changes its fonts; build_excalidraw.py reads the file that is kept
beside it. Advance widths alone, without kerning and ligatures, which make text narrower more than wider.
"""

from __future__ import annotations

import json
import math
import sys
import unicodedata
from collections import defaultdict
from pathlib import Path

from fontTools.ttLib import TTFont

WIDTHS = Path(__file__).parents[1] / "skills/excalidraw/scripts/font_widths.json"

# Excalidraw's number of each font, and the folder of its files.
FONTS = {5: "Excalifont", 6: "Nunito", 7: "Lilita", 8: "ComicShanns", 9: "Liberation", 10: "Assistant"}


def advance_widths(folder: Path) -> dict[str, int]:
    """The width of each character in thousandths of the font size, rounded up."""
    widths: dict[str, int] = {}
    for path in sorted(folder.glob("*Regular*.woff2")):
        font = TTFont(path)
        units_per_em = font["head"].unitsPerEm
        for codepoint, glyph in font.getBestCmap().items():
            # Combining marks take no width of their own once they are composed.
            if not unicodedata.combining(chr(codepoint)):
                width = math.ceil(font["hmtx"][glyph][0] * 1000 / units_per_em)
                widths[chr(codepoint)] = max(width, widths.get(chr(codepoint), 0))
    return widths


def by_width(widths: dict[str, int]) -> dict[str, str]:
    """{"512": "abé"}: a tenth of the size of one entry a character."""
    characters: dict[int, list[str]] = defaultdict(list)
    for character, width in sorted(widths.items()):
        characters[width].append(character)
    return {str(width): "".join(characters[width]) for width in sorted(characters)}


def main(fonts: Path) -> None:
    table = {str(number): by_width(advance_widths(fonts / folder)) for number, folder in FONTS.items()}
    if not all(table.values()):
        raise SystemExit(f"{fonts}: no *Regular*.woff2 in the folder of every font")
    WIDTHS.write_text(json.dumps(table, indent=1, ensure_ascii=True) + "\n", encoding="ascii")
    for number, widths in table.items():
        print(f"{FONTS[int(number)]}: {sum(map(len, widths.values()))} characters")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

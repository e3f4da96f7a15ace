#!/usr/bin/env python3
"""Draws what a command prints in colour as an SVG: CLICOLOR_FORCE=1 COMMAND | docs/make-picture.py 'COMMAND' > docs/ls.svg"""

import re
import sys
from html import escape

COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "34": "#79c0ff", "36": "#76e3ea"}
WIDTH, HEIGHT = 8.4, 20


def runs(line):
    """Splits a line with escape sequences into (style, text)."""
    style = ""
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b"):
            codes = part[2:-1].split(";")
            if codes in ([""], ["0"]):
                style = ""
            for code in codes:
                style += {"1": "font-weight:bold;", "2": "opacity:.6;"}.get(code, "")
                style += f"fill:{COLOURS[code]};" if code in COLOURS else ""
        elif part:
            yield style, part


def main():
    lines = [f"$ {sys.argv[1]}"] + sys.stdin.read().rstrip("\n").split("\n")
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    width = max(map(len, plain)) * WIDTH + 32
    height = len(lines) * HEIGHT + 32
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" role="img">')
    print(f"<title>{escape(sys.argv[1])}</title>")
    print('<rect width="100%" height="100%" rx="8" fill="#0d1117"/>')
    print('<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace" '
          'font-size="14" fill="#e6edf3" xml:space="preserve">')
    for row, line in enumerate(lines):
        column = 0
        for style, text in runs(line):
            x, y = 16 + column * WIDTH, 30 + row * HEIGHT
            css = f' style="{style}"' if style else ""
            # The length keeps columns apart whatever font is there.
            print(f'<text x="{x:.1f}" y="{y}" textLength="{len(text) * WIDTH:.1f}"{css}>{escape(text)}</text>')
            column += len(text)
    print("</g></svg>")


main()

"""Bar charts as SVG: small, and readable on light and dark pages."""

import math
from xml.sax.saxutils import escape

WIDTH, LABEL, VALUE, BAR, GAP = 760, 150, 190, 18, 14
COLOURS = ["#0b62a4", "#e07b00", "#2a9d4a", "#8e44ad"]


def chart(title, groups, show, series=(), log=False):
    """A bar for each value.

    groups: [(label, [value of each series, or None])]; show: a value as text; log: lengths by the logarithm.
    """
    values = [value for _, row in groups for value in row if value]
    most = max(values, default=1)
    least = min(values, default=1) / 2
    room = WIDTH - LABEL - VALUE

    def length(value):
        if not value:
            return 0
        if not log:
            return value / most * room
        return room * math.log(value / least) / math.log(most / least)

    body, y = [], 34
    if len(series) > 1:
        x = LABEL
        for index, name in enumerate(series):
            body.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{COLOURS[index]}"/>')
            body.append(f'<text x="{x + 18}" y="{y + 11}">{escape(name)}</text>')
            x += 40 + 8 * len(name)
        y += 26
    for label, row in groups:
        middle = y + len(row) * (BAR + 2) / 2 + 3
        body.append(f'<text x="{LABEL - 10}" y="{middle:.0f}" text-anchor="end">{escape(label)}</text>')
        for index, value in enumerate(row):
            width = max(length(value), 1 if value is not None else 0)
            if value is not None:
                body.append(f'<rect x="{LABEL}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{COLOURS[index]}"/>')
            text = show(value) if value is not None else "no figure"
            body.append(f'<text x="{LABEL + width + 6:.1f}" y="{y + 14}">{escape(text)}</text>')
            y += BAR + 2
        y += GAP
    note = " (logarithmic)" if log else ""
    return (
        "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}" '
                'font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="13" fill="#222">',
                f"<title>{escape(title)}</title>",
                f'<rect width="{WIDTH}" height="{y}" fill="#fff"/>',
                f'<text x="10" y="20" font-size="15" font-weight="bold">{escape(title + note)}</text>',
                *body,
                "</svg>",
            ]
        )
        + "\n"
    )

"""Markdown, and numbers as text."""

import statistics


def duration(seconds):
    """Three digits, in the unit that suits."""
    if seconds is None:
        return "–"
    for size, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size * 0.9995:
            return f"{digits(seconds / size)} {unit}"
    return f"{digits(seconds * 1e9)} ns"


def digits(value):
    """Three significant digits, with separators of thousands."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    if abs(value) >= 999.5:
        return f"{float(f'{value:.3g}'):,.0f}"
    text = f"{value:.3g}"
    # Python prints 0.0001 as 1e-04 from the fifth place on.
    return f"{value:.6f}".rstrip("0") if "e" in text else text


def times(value):
    """A factor: two digits are more than rounds on a shared host carry."""
    return digits(float(f"{value:.2g}"))


def whole(value):
    return "–" if value is None else f"{value:,.0f}"


def signed(seconds, resolution=0):
    """An error in ms, one digit; of a tool that prints coarser figures no more than these say."""
    if seconds is None:
        return "–"
    if resolution and abs(seconds) < resolution:
        return f"within {duration(resolution)}"
    # No sign where nothing is left of it.
    return f"{round(seconds * 1e3, 1):+.1f} ms" if abs(seconds) >= 0.5e-4 else "0.0 ms"


def percent(share):
    return "–" if share is None else f"{digits(share * 100)} %"


def median(values):
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def spread(values, show):
    """The median, and lowest to highest where there are several."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return "–"
    text = show(statistics.median(known))
    return text if show(known[0]) == show(known[-1]) else f"{text} ({show(known[0])} to {show(known[-1])})"


def table(columns, rows, right=()):
    """Lines of a table; the columns of `right` are aligned to the right."""
    marks = ["---:" if index in right else "---" for index in range(len(columns))]
    return [line(columns), line(marks), *(line(row) for row in rows)]


def line(cells):
    return f"| {' | '.join(str(cell) for cell in cells)} |"


class Document:
    def __init__(self, title):
        self.lines = [f"# {title}"]

    def add(self, *lines):
        """A block, after an empty line."""
        self.lines += ["", *lines]

    def heading(self, text, level=2):
        self.add(f"{'#' * level} {text}")

    def table(self, columns, rows, right=()):
        self.add(*table(columns, rows, right))

    def list(self, items):
        if items:
            self.add(*(f"- {item}" for item in items))

    def code(self, lines):
        self.add("```sh", *lines, "```")

    def write(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(self.lines) + "\n")

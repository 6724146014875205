"""Opens pages in headless Chromium and says what is wrong with them.

check.py JOB.json, where the job is {"pages": [{"name", "path", "figures": [...]}]}; the answer, on standard output, is
{"NAME": [{"check", "view", "words"}]}. "figures" are texts that the page has to show.
check.py --ready: ends with 0 if all that this needs is there.

It looks at the narrowest width, where pages break first; with CLAMOR_CHECK_SLOW set at all widths.
"""

import importlib.util
import json
import os
import pathlib
import re
import sys

from chromium import Chromium, Page, path

HERE = pathlib.Path(__file__).parent
CHECKS = (HERE / "checks.js").read_text()
TEXT = (HERE / "figures.js").read_text()
WIDTHS = (320, 800, 1280) if os.environ.get("CLAMOR_CHECK_SLOW") else (320,)
UNFOLD = 'for (const details of document.querySelectorAll("details")) details.open = true'
# The drawings that the pointer is put on: the first ones of each look.
CHARTS = """[...document.querySelectorAll("svg:not(svg svg)")].filter((svg, place, all) =>
    svg.getClientRects().length && place === all.findIndex(one =>
        one.getClientRects().length && one.getAttribute("class") === svg.getAttribute("class")))"""
CENTER = """(svg => {
    svg.scrollIntoView({block: "center"});
    const rect = svg.getBoundingClientRect();
    return [rect.left + rect.width / 2, rect.top + rect.height / 2];
})"""
FOCUS = 'document.querySelector(".strip, svg[tabindex]")?.focus()'
KEYS = ("ArrowRight", "ArrowRight", "+", "ArrowLeft", "-", "0")
# For axe, which looks at each element for milliseconds: rows of a table are alike, and of drawings it judges the names.
THIN = """
for (const row of document.querySelectorAll("tbody tr:nth-child(n + 4):not(:last-child)")) row.remove();
for (const part of document.querySelectorAll("svg > :not(title, desc)")) part.remove();
"""
ALL_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
# Of what the scheme changes.
COLOR_RULES = ["color-contrast", "link-in-text-block"]
AXE = """
axe.run(document, {runOnly: RULES, resultTypes: ["violations"], elementRef: false})
    .then(result => result.violations.map(rule => [
        rule.id, rule.help, rule.nodes.length,
        rule.nodes.slice(0, 3).map(node => node.target.join(" ") + ": " + node.failureSummary.replace(/\\s+/g, " ")),
    ]))
"""


def axe():
    """The script of axe-core; it comes with a package that is not otherwise used."""
    package = importlib.util.find_spec("axe_playwright_python")
    if package is None:
        raise SystemExit("PyPI axe-playwright-python is missing")
    return (pathlib.Path(package.submodule_search_locations[0]) / "axe.min.js").read_text()


def figures(text):
    """Every word with a digit."""
    return set(re.findall(r"\S*\d\S*", text))


def check(page, job, rules):
    findings = []

    def find(check, view, words):
        findings.append({"check": check, "view": view, "words": words})

    url = pathlib.Path(job["path"]).absolute().as_uri()
    page.view(1280)
    requests, errors = page.open(url)
    for address in requests:
        find("request", "1280", address)
    for error in errors:
        find("script", "1280", error)
    for width in sorted({WIDTHS[0], WIDTHS[-1]}):
        page.view(width)
        # On each chart in turn, since the pointer may bring up what stands on others; then by keyboard.
        for chart in range(page.run(CHARTS + ".length")):
            x, y = page.run(f"{CENTER}({CHARTS}[{chart}])")
            page.point(x, y)
            for name, words in page.run(CHECKS):
                find(name, f"{width} under the pointer", words)
        page.run(FOCUS)
        for key in KEYS:
            page.press(key)
        for name, words in page.run(CHECKS):
            find(name, f"{width} by keyboard", words)
        page.point(0, 0)
    for error in page.complaints()[1]:
        find("script", "under the pointer", error)
    page.open(url)
    for is_open in (False, True):
        if is_open:
            page.run(UNFOLD)
        for width in WIDTHS:
            page.view(width)
            for name, words in page.run(CHECKS):
                find(name, f"{width}{' unfolded' if is_open else ''}", words)
    page.view(1280)
    text = page.run(TEXT)
    for figure in job.get("figures", []):
        if figure not in text:
            find("figure", "1280", f"{figure} is not in the text")
    page.view(1280, dark=True)
    for name, words in page.run(CHECKS):
        if name == "contrast":
            find(name, "dark", words)
    page.run(THIN + rules + ";1")
    for dark in (False, True):
        page.view(1280, dark=dark)
        for rule, help_text, count, nodes in page.run(AXE.replace("RULES", str(COLOR_RULES if dark else ALL_RULES))):
            find("axe", "dark" if dark else "light", f"{rule}: {help_text}; {count} elements: {' | '.join(nodes)}")

    _, errors = page.open(url, scripts=False)
    plain = page.run(TEXT)
    for figure in sorted(figures(text) ^ figures(plain)):
        find("scripts off", "1280", f"{figure} stands only {'with' if figure in text else 'without'} scripts")
    for width in WIDTHS:
        page.view(width)
        for name, words in page.run(CHECKS):
            find(name, f"{width} unfolded, scripts off", words)
    return findings


def main():
    rules = axe()
    if sys.argv[1] == "--ready":
        raise SystemExit(None if path() else "no Chromium")
    with open(sys.argv[1]) as file:
        jobs = json.load(file)["pages"]
    with Chromium() as browser:
        page = Page(browser)
        answer = {job["name"]: check(page, job, rules) for job in jobs}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()

"""Follows the live page of a run in headless Chromium until the run has ended.

live.py URL REPORT STATES: REPORT is the path of the report that the run writes at its end. After so many states, half of
them behind a reload, it prints "seen" and waits for the end of the run. The answer, on standard output, is {"seconds", "states", "heap": [...], "nodes": [...], "reloaded", "last", "report", "errors"}. "heap" is bytes of
JavaScript after a collection, once a second; "last" and "report" are the texts of the last state and of the report.
"""

import json
import os
import pathlib
import sys
import time

from chromium import Chromium, Page

STATE = 'document.querySelector(".badges")?.innerText + document.querySelector("main").innerText.length'
IS_FINAL = 'document.querySelector("footer.page").innerText.includes("Made by ")'
TEXT = """(() => {
    for (const part of document.querySelectorAll("details")) part.open = true;
    return document.querySelector("header.page").innerText + document.querySelector("main").innerText;
})()"""


def heap(page):
    page.call("HeapProfiler.collectGarbage")
    return page.call("Runtime.getHeapUsage")["usedSize"], page.run('document.querySelectorAll("*").length')


def main(url, report, wanted):
    answer = {"states": 0, "heap": [], "nodes": [], "reloaded": False, "errors": []}
    with Chromium() as browser:
        page = Page(browser)
        page.view(1280)
        _, answer["errors"] = page.open(url)
        began = time.monotonic()
        last, is_final, wanted = None, False, int(wanted)
        while not is_final:
            state = page.run(STATE)
            if state != last:
                answer["states"] += 1
                last = state
                used, nodes = heap(page)
                answer["heap"].append(used)
                answer["nodes"].append(nodes)
                if answer["states"] == wanted:
                    print("seen", flush=True)
            if answer["states"] == wanted // 2 and not answer["reloaded"]:
                page.open(url)
                answer["reloaded"] = page.run('document.querySelectorAll("main svg").length') > 0
            time.sleep(0.2)
            is_final = page.run(IS_FINAL)
        answer["seconds"] = time.monotonic() - began
        answer["last"] = page.run(TEXT)
        while not os.path.exists(report):
            time.sleep(0.05)
        page.open(pathlib.Path(report).absolute().as_uri())
        answer["report"] = page.run(TEXT)
    print(json.dumps(answer))


main(*sys.argv[1:])

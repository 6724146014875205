"""Makes the pictures of pages that README and the guides show, from runs of its own.

pictures.py CLAMOR FOLDER [RUNS]: with RUNS the runs of an earlier call, or where they are kept.
pictures.py CLAMOR --example FOLDER: the example of README, a run of mosquitto and one of the decoder.
"""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

from chromium import Chromium, Page

# Bytes that a picture may have.
LIMIT = 200_000
WIDTH = 1280
LOAD = ["pubsub", "-h", "embedded", "-c", "100", "-q", "1", "-s", "256"]


class Runs:
    def __init__(self, clamor, folder):
        self.clamor = clamor
        self.folder = folder

    def path(self, name):
        return self.folder / name

    def clam(self, *words, wants=(0,)):
        status = subprocess.run([self.clamor, *map(str, words)], stdout=subprocess.DEVNULL).returncode
        if status not in wants:
            raise SystemExit(f"clamor {' '.join(map(str, words))}: exit code {status}")

    def result(self, name, *words, wants=(0,)):
        """The directory of a run, which is made unless it exists."""
        if not self.path(name).exists():
            # Options of a search come before its load.
            self.clam(words[0], "--out", self.path(name), *words[1:], wants=wants)
        return self.path(name)

    def run(self):
        # One second without answers: the page has to say so.
        return self.result(
            "run", *LOAD, "--rate", "1000/s", "--duration", "30s", "--broker=--stall 1s@18s",
            "--threshold", "publish_ack_duration p99 < 50ms", "--threshold", "delivery_lost == 0", wants=(0, 99),
        ) / "report.html"

    def hang(self):
        """From the tenth second on the broker says nothing more, until it is ended."""
        broker = subprocess.Popen(
            [self.clamor, "broker", "-p", "0", "--stall", "10m@10s"], stdout=subprocess.PIPE, text=True
        )
        try:
            port = broker.stdout.readline().rsplit(":", 1)[1].strip()
            load = ["-h", "127.0.0.1", "-p", port] + LOAD[3:]
            return self.result(
                "hang", "pubsub", *load, "--rate", "1000/s", "--duration", "20s", "--drain", "2s",
                "--threshold", "publish_ack_duration p99 < 50ms", "--threshold", "delivery_lost == 0", wants=(99,),
            ) / "report.html"
        finally:
            broker.terminate()
            broker.wait()

    def compare(self):
        """Four runs a side in turn; the new side is a broker that holds what it sends."""
        def side(name, number, *more):
            return self.result(f"{name}-{number}", *LOAD, "--rate", "500/s", "--duration", "5s", *more)

        pairs = [(side("base", number), side("new", number, "--broker=--delay 2ms")) for number in range(4)]
        page = self.path("compare.html")
        base, new = zip(*pairs)
        self.clam("compare", "--base", *base, "--new", *new, "--allow-different", "plan", "--html", page, wants=(0, 99))
        return page

    def capacity(self):
        return self.result(
            "capacity", "capacity", "--slo", "publish_ack_duration p99 < 50ms", "--hold", "5s", "--first", "1000/s",
            "pub", "-h", "embedded", "-c", "50", "-q", "1", "--broker=--max-rate 6000/s", wants=(0, 99),
        ) / "report.html"

    def trend(self):
        """Fourteen runs; from the eighth on the broker holds what it sends."""
        runs = []
        for faults, numbers in (([], range(1, 8)), (["--delay", "3ms"], range(8, 15))):
            broker = subprocess.Popen(
                [self.clamor, "broker", "-p", "0", *faults], stdout=subprocess.PIPE, text=True
            )
            try:
                port = broker.stdout.readline().rsplit(":", 1)[1].strip()
                load = [LOAD[0], "-h", "127.0.0.1", "-p", port, *LOAD[3:], "--rate", "500/s", "--duration", "3s"]
                runs += [self.result(f"trend-{n}", *load, "--tag", f"commit=build-{n}") for n in numbers]
            finally:
                broker.terminate()
                broker.wait()
        page = self.path("trend.html")
        self.clam("trend", *runs, "--html", page)
        return page


def example(clamor, target):
    """What README shows without a build: the files that a reader opens, and a picture of the first page."""
    loads = {
        "mosquitto": ["pubsub", "-h", "127.0.0.1", "-c", "100", "-q", "1", "-s", "256", "--rate", "1000/s"],
        "decoder": ["decode"],
    }
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    broker = subprocess.Popen(["mosquitto", "-p", port], stderr=subprocess.DEVNULL)
    try:
        for name, load in loads.items():
            folder = target / name
            shutil.rmtree(folder, ignore_errors=True)
            place = ["-p", port] if "-h" in load else []
            subprocess.run([clamor, *load, *place, "--out", str(folder)], check=True)
            for file in folder.iterdir():
                if file.suffix not in (".json", ".csv", ".html"):
                    file.unlink()
    finally:
        broker.terminate()
        broker.wait()
    with Chromium() as browser:
        shoot(Page(browser), target / "mosquitto" / "report.html", target / "mosquitto" / "page.png")


def shoot(page, source, target, dark=False):
    """The first screen, as high as the limit allows."""
    page.view(WIDTH, dark=dark)
    page.open(source.absolute().as_uri())
    for height in range(960, 300, -80):
        page.view(WIDTH, height, dark=dark)
        page.screenshot(target)
        size = os.path.getsize(target)
        if size <= LIMIT:
            print(f"{target}: {WIDTH} x {height}, {size} bytes")
            return
    raise SystemExit(f"{target}: {size} bytes, over {LIMIT}")


def main():
    if sys.argv[2] == "--example":
        return example(sys.argv[1], pathlib.Path(sys.argv[3]))
    clamor, target = sys.argv[1], pathlib.Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="clamor-pictures-") as scratch:
        folder = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else scratch)
        folder.mkdir(parents=True, exist_ok=True)
        runs = Runs(clamor, folder)
        sources = [
            ("run", runs.run()), ("hang", runs.hang()), ("compare", runs.compare()), ("capacity", runs.capacity()),
            ("trend", runs.trend()),
        ]
        with Chromium() as browser:
            page = Page(browser)
            for name, source in sources:
                shoot(page, source, target / f"page-{name}.png")
            # DocC takes it where the reader's screen is dark.
            shoot(page, sources[0][1], target / "page-run~dark.png", dark=True)


if __name__ == "__main__":
    main()

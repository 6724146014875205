"""Runs of clamor, and figures of their records."""

import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys

from .processes import Program, wait_until
from .servers import clamor_path

# Thresholds that fail, an objective that nothing holds, and connections that fail are answers.
ANSWERS = {0, 69, 99}
# The exit status of a run that a signal ended.
INTERRUPTED = 105
# The longest of a run takes 40 s; one that takes longer hangs. After a signal a run ends within the time that its
# clients have for their last answers.
RUN_SECONDS, GRACE = 120, 40


class Record:
    """run.json of a result directory."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.json = json.loads((self.directory / "run.json").read_text())

    @property
    def verdict(self):
        return self.json["verdict"]["state"]

    @property
    def reasons(self):
        return [reason["text"] for reason in self.json["verdict"]["reasons"]]

    @property
    def stolen(self):
        return self.json["generator"].get("host_steal")

    def metric(self, name, **labels):
        """The first one with these labels; empty where there is none."""
        wanted = labels.items()
        for metric in self.json["metrics"]:
            if metric["name"] == name and all(metric["labels"].get(key) == value for key, value in wanted):
                return metric
        return {}

    def total(self, name, **labels):
        """The sum of a counter over the labels that are not given; stages apart, they repeat the whole."""
        return sum(
            metric["value"]
            for metric in self.json["metrics"]
            if metric["name"] == name
            and all(metric["labels"].get(key) == value for key, value in labels.items())
            and ("stage" in labels or "stage" not in metric["labels"])
        )


class Clamor:
    """Runs clamor and keeps the command lines, without ports and directories."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.count = 0
        self.lines = {}
        # A run that CI's summary file would collect is none of this.
        os.environ.pop("GITHUB_STEP_SUMMARY", None)

    def keep(self, question, words, port):
        # Ports, process numbers and paths differ from run to run.
        text = shlex.join(str(word) for word in words).replace(str(self.folder), "DIR")
        text = re.sub(r"(--watch-pid) \d+", r"\1 PID", re.sub(rf"\b{port}\b", "PORT", text))
        lines = self.lines.setdefault(question, [])
        if text not in lines:
            lines.append(text)

    def start(self, question, port, words):
        """The directory of the result, and the running program."""
        self.count += 1
        out = self.folder / f"run-{self.count}"
        words = [str(word) for word in words]
        self.keep(question, ["clamor", *words], port)
        # Options of a search come before its load.
        verb = 2 if words[0] == "xmpp" else 1
        command = [clamor_path(), *words[:verb], "--quiet", "--no-page", "--out", str(out), *words[verb:]]
        return out, Program(command, self.folder, f"clamor-{self.count}")

    @staticmethod
    def result(out, program, answers):
        if program.status not in answers or not out.exists():
            sys.exit(f"{shlex.join(program.words)}: exit status {program.status}\n{program.text[-2000:]}")
        return out

    def run(self, question, port, *words):
        """The result directory, whatever the verdict."""
        out, program = self.start(question, port, words)
        with program:
            return self.result(out, program.wait(RUN_SECONDS), ANSWERS)

    def search(self, question, port, *words, seconds):
        """As `run`; after so many seconds it is interrupted, and has the steps that it made."""
        out, program = self.start(question, port, words)
        with program:
            if wait_until(program.has_ended, seconds):
                return self.result(out, program, ANSWERS)
            program.send(signal.SIGINT)
            return self.result(out, program.wait(GRACE), ANSWERS | {INTERRUPTED})

    def record(self, question, port, *words):
        return Record(self.run(question, port, *words))

    def scenario(self, name):
        words = [clamor_path(), "init", name, "--out", "-"]
        try:
            return subprocess.run(words, capture_output=True, text=True, check=True, timeout=30).stdout
        except subprocess.SubprocessError as failure:
            raise SystemExit(str(failure)) from failure

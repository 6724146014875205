"""Runs of clamor, and figures of their records."""

import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys

from .servers import clamor_path

# The exit status of a run that a signal ended.
INTERRUPTED = 105


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
        return self.json["generator"].get("host_steal", 0)

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

    def keep(self, question, words, port):
        # Ports, process numbers and paths differ from run to run.
        text = shlex.join(str(word) for word in words).replace(str(self.folder), "DIR")
        text = re.sub(r"(--watch-pid) \d+", r"\1 PID", re.sub(rf"\b{port}\b", "PORT", text))
        lines = self.lines.setdefault(question, [])
        if text not in lines:
            lines.append(text)

    def run(self, question, port, *words, seconds=None):
        """The record of a run, whatever its verdict; after so many seconds it is interrupted."""
        self.count += 1
        out = self.folder / f"run-{self.count}"
        words = [str(word) for word in words]
        self.keep(question, ["clamor", *words], port)
        # Options of a search come before its load.
        verb = 2 if words[0] == "xmpp" else 1
        command = [clamor_path(), *words[:verb], "--quiet", "--no-page", "--out", str(out), *words[verb:]]
        # A run that CI's summary file would collect is none of this.
        variables = {key: value for key, value in os.environ.items() if key != "GITHUB_STEP_SUMMARY"}
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=variables, cwd=self.folder)
        # Thresholds that fail, an objective that nothing holds, and connections that fail are answers.
        answers = {0, 69, 99}
        try:
            _, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            # It ends within the time that its clients have for their last answers.
            _, errors = process.communicate()
            answers.add(INTERRUPTED)
        finally:
            # Where this script ends meanwhile.
            process.kill()
        if process.returncode not in answers or not out.exists():
            sys.exit(f"{shlex.join(command)}: exit status {process.returncode}\n{errors}")
        return out

    def record(self, question, port, *words):
        return Record(self.run(question, port, *words))

    def scenario(self, name):
        words = [clamor_path(), "init", name, "--out", "-"]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

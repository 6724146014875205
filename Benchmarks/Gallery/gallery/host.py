"""The host, and versions of programs."""

import os
import pathlib
import platform
import shutil
import subprocess
import time

from .processes import PATH

ROOT = pathlib.Path(__file__).resolve().parents[3]


def lines(*words):
    """What a program prints; empty if it does not run, or does not end."""
    try:
        ended = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return ended.stdout.splitlines()


def output(*words):
    """The first line that a program prints; empty if there is none."""
    return next(iter(lines(*words)), "").strip()


def revision(clamor):
    """The revision that clamor was built from, as `clamor --version` prints it below its version; else empty."""
    found = (line for line in lines(clamor, "--version")[1:] if line.startswith("revision "))
    return next(found, "")


def program(name):
    return shutil.which(name, path=PATH)


def package(name):
    """The version of Debian's package; empty where there is none."""
    words = ["dpkg-query", "-W", "-f", "${Version}", name]
    try:
        ended = subprocess.run(words, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ended.stdout if ended.returncode == 0 else ""


def cpu_ticks():
    """CPU time that the hypervisor gave to other machines, idle time, and all time of all cores."""
    fields = [int(field) for field in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return fields[7], fields[3] + fields[4], sum(fields)


def stolen(before, now):
    """The share of the CPU that other machines took between two readings; None without time between them."""
    total = now[2] - before[2]
    return (now[0] - before[0]) / total if total else None


class Host:
    """Facts for the head of a report; it also follows the share of the CPU that was stolen."""

    def __init__(self, clamor):
        self.clamor = clamor
        before = cpu_ticks()
        time.sleep(2)
        self.began = cpu_ticks()
        self.busy = 1 - (self.began[1] - before[1]) / (self.began[2] - before[2])
        self.date = time.strftime("%Y-%m-%d")
        self.started = time.monotonic()

    def rows(self):
        cpu = next(
            (line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown"
        )
        memory = next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemTotal"))
        system = next(
            (line.split("=")[1].strip().strip('"') for line in open("/etc/os-release") if line.startswith("PRETTY")),
            "unknown",
        )
        share = stolen(self.began, cpu_ticks())
        return [
            ["date", self.date],
            ["CPU", f"{cpu}, {os.cpu_count()} cores, shared by load and server"],
            ["memory", f"{memory / 2**20:.0f} GiB"],
            ["system", f"{system}, Linux {platform.release()}"],
            ["Clamor", self.version()],
            ["CPU used before the first run", f"{self.busy:.0%}" + self.warning],
            ["CPU taken by other machines", f"{share:.1%}" if share is not None else "unknown"],
            ["took", f"{(time.monotonic() - self.started) / 60:.0f} minutes"],
        ]

    @property
    def warning(self):
        return ": **the host was not quiet**" if self.busy > 0.1 else ""

    def version(self):
        facts = (output(self.clamor, "--version"), revision(self.clamor))
        return ", ".join(fact for fact in facts if fact)

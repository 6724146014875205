"""Processes with a log of their own, their CPU time and memory, and free ports of loopback."""

import atexit
import os
import pathlib
import resource
import shlex
import signal
import socket
import subprocess
import sys
import time

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
# Where Debian has servers, for users without them in PATH.
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"


def raise_descriptor_limit():
    """As many descriptors as the hard limit allows; servers and tools inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Erlang makes room for all that it may open.
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))


class Terminated(SystemExit):
    """By SIGTERM; it is no failure of the question that was asked meanwhile."""


class Hung(SystemExit):
    """Of a program that did not end in its time, and was ended."""


def end_on_sigterm():
    """A signal that ends Python at once would leave servers behind: `atexit` runs on an orderly exit only."""

    def terminate(*_):
        raise Terminated(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, terminate)


def free_ports(count):
    """Free ports of 127.0.0.1; they are held together, so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def wait_until(is_true, seconds, pause=0.05):
    """Whether it became true in time."""
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


class Program:
    """A process that leads a session of its own; what it prints is in a file."""

    def __init__(self, words, folder, name, variables=None, output=None):
        self.words = [str(word) for word in words]
        self.log = pathlib.Path(folder) / f"{name}.log"
        self.status = None
        self.cpu_seconds = None
        with open(self.log, "wb") as log, open(output or os.devnull, "wb") as out:
            self.process = subprocess.Popen(
                self.words,
                stdin=subprocess.DEVNULL,
                stdout=out if output else log,
                stderr=log,
                cwd=folder,
                env={**os.environ, "PATH": PATH, **(variables or {})},
                start_new_session=True,
            )
        self.pid = self.process.pid
        # Where the script gives up, nothing may outlive it.
        atexit.register(self.end, signal.SIGKILL)

    @property
    def text(self):
        return self.log.read_text(errors="replace")

    def has_ended(self):
        """Takes its status and CPU time, those of its own ended children included, once it has ended."""
        if self.status is None and os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            # Children that outlived it. Once it is waited for, its number may be another process'.
            os.killpg(self.pid, signal.SIGKILL)
            _, status, usage = os.wait4(self.pid, 0)
            self.status = os.waitstatus_to_exitcode(status)
            self.process.returncode = self.status
            self.cpu_seconds = usage.ru_utime + usage.ru_stime
            atexit.unregister(self.end)
        return self.status is not None

    def wait(self, seconds):
        if not wait_until(self.has_ended, seconds, 0.01):
            self.end()
            raise Hung(f"{shlex.join(self.words)}: did not end within {seconds} s\n{self.text[-2000:]}")
        return self

    def send(self, number):
        """To the program alone, which ends its children as it sees fit."""
        if not self.has_ended():
            os.kill(self.pid, number)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end(signal.SIGKILL)

    def end(self, number=signal.SIGTERM, seconds=10):
        """Sends the signal to its session, and SIGKILL to a session that stays."""
        for each, patience in ((number, seconds), (signal.SIGKILL, 10)):
            if self.has_ended():
                break
            os.killpg(self.pid, each)
            wait_until(self.has_ended, patience)
        return self

    def must_listen(self, port, seconds=60):
        if not wait_until(lambda: self.has_ended() or listens(port), seconds) or self.status is not None:
            self.end(signal.SIGKILL)
            sys.exit(f"{' '.join(self.words)}: does not listen on port {port}\n{self.text[-2000:]}")
        return self


def tree(pid):
    """The process and all its descendants."""
    children = {}
    for each in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            children.setdefault(int(each.read_text().rsplit(")", 1)[1].split()[1]), []).append(int(each.parent.name))
        except OSError:
            continue
    found, open_ends = [], [pid]
    while open_ends:
        found.append(open_ends.pop())
        open_ends += children.get(found[-1], [])
    return found


def usage(pid):
    """CPU seconds and resident bytes of the process and all its descendants."""
    cpu, resident = 0, 0
    for each in tree(pid):
        try:
            fields = pathlib.Path(f"/proc/{each}/stat").read_text().rsplit(")", 1)[1].split()
            # Its own, and those of its ended children.
            cpu += sum(int(field) for field in fields[11:15])
            resident += int(pathlib.Path(f"/proc/{each}/statm").read_text().split()[1])
        except OSError:
            continue
    return cpu / TICK, resident * PAGE


def settle(pid, seconds=60):
    """Waits until the process uses little CPU, such as for clients that have left."""

    def is_idle():
        before = usage(pid)[0]
        time.sleep(0.5)
        return usage(pid)[0] - before < 0.1

    wait_until(is_idle, seconds, 0)


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))

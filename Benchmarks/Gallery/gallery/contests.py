"""Contests of load tools: the same work, one tool after the other, several rounds."""

import contextlib
import pathlib
import re
import shlex
import signal
import sys
import tempfile
import time

from . import emulators, host
from .processes import Program, descriptors, usage, wait_until
from .servers import clamor_path, mosquitto

RECEIVED = "$SYS/broker/publish/messages/received"

# The longest work takes 30 s; a program that takes longer hangs.
TOOL_SECONDS = 120
# How often a disturbed run is repeated, and all repetitions together.
REPEATS, REPEAT_SECONDS = 2, 180


class Sizes:
    def __init__(self, quick):
        self.clients = 20 if quick else 100
        self.messages = {0: 20_000, 1: 10_000, 2: 5_000} if quick else {0: 200_000, 1: 100_000, 2: 50_000}
        # At each QoS. At QoS 0 for longer than the second after which emqtt_bench prints its first counts.
        self.counted = [2_000] * 3 if quick else [200_000, 30_000, 30_000]
        self.few, self.many, self.rate = (50, 500, 500) if quick else (100, 5_000, 1_000)
        self.pairs, self.interval = 20, 100
        self.delay_seconds, self.delay = (3 if quick else 8), 0.020
        self.stall_seconds, self.stall, self.stall_at = (5, 1, 2) if quick else (10, 2, 5)


class Field:
    """Runs work and keeps its command lines."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.count = 0
        self.lines = {}

    def directory(self):
        self.count += 1
        path = self.folder / str(self.count)
        path.mkdir()
        return path

    def start(self, question, work, port, directory, name="tool"):
        words = [str(word) for word in work.words]
        text = shlex.join([pathlib.Path(words[0]).name, *words[1:]]).replace(str(directory), "DIR")
        for each, content in work.files.items():
            # Once for all numbers of clients and messages, and all QoS levels.
            content = re.sub(r"x{64}", "x…", re.sub(r'\b(maxnumber|to|qos)="\d+"', r'\1="…"', content.rstrip()))
            text += f"\n# {each}:\n{content}"
        text = re.sub(rf"\b{port}\b", "PORT", text)
        if text not in self.lines.setdefault(question, []):
            self.lines[question].append(text)
        return Program(words, directory, name, work.variables)


class Counter:
    """mosquitto's own count of PUBLISH received, as it publishes it each second."""

    def __init__(self, port, folder):
        # A fresh broker has received nothing.
        self.last = 0
        self.output = folder / "sys.txt"
        words = [
            host.program("mosquitto_sub"),
            "-p",
            port,
            "-k",
            3600,
            "-v",
            "-t",
            "$SYS/broker/uptime",
            "-t",
            RECEIVED,
        ]
        self.program = Program(words, folder, "sys", output=self.output)

    def more(self):
        """Those since the last call; final, if no traffic goes on: a second's uptime is published before its counts."""
        before = self.output.read_text().count("uptime")
        if not wait_until(lambda: self.output.read_text().count("uptime") >= before + 2, 10):
            sys.exit("mosquitto published no counts")
        values = re.findall(rf"^{re.escape(RECEIVED)} (\d+)$", self.output.read_text(), re.MULTILINE)
        last, self.last = self.last, int(values[-1]) if values else 0
        return self.last - last


@contextlib.contextmanager
def broker(folder):
    with tempfile.TemporaryDirectory(prefix="clamor-rivals-") as own, mosquitto(pathlib.Path(own)) as server:
        counter = Counter(server.port, folder)
        try:
            yield server, counter
        finally:
            counter.program.end(signal.SIGKILL)


def messages(field, tool, qos, sizes):
    """CPU per message: what more messages cost beyond one for each client."""
    with broker(field.directory()) as (server, counter):

        def run(count):
            directory = field.directory()
            work = tool.publish(server.port, qos, sizes.clients, count, directory)
            program = field.start("messages", work, server.port, directory).wait(TOOL_SECONDS)
            # mosquitto leaves QoS 2 out of its count.
            return program, count if qos == 2 else counter.more()

        base, few = run(sizes.clients)
        full, many = run(sizes.messages[qos])
        if many <= few:
            return {"failed": f"only {many} messages arrived"}
        return {"cpu": (full.cpu_seconds - base.cpu_seconds) / (many - few)}


def connects(field, tool, sizes):
    """CPU and memory per client, once all are up and idle: what many clients cost beyond few."""

    def run(clients):
        directory = field.directory()
        with broker(directory) as (server, _):
            time.sleep(0.2)
            before = descriptors(server.pid)
            work = tool.connect(server.port, clients, sizes.rate, directory)
            program = field.start("connects", work, server.port, directory)
            is_up = wait_until(lambda: program.has_ended() or descriptors(server.pid) - before >= clients, 60)
            up = descriptors(server.pid) - before
            # Few clients are held for as long as many need, so that idle seconds do not count as connects.
            time.sleep(1 + (sizes.many - clients) / sizes.rate)
            figures = (up, *usage(program.pid), emulators.emulator(program.pid))
            program.end()
            if not is_up or up < clients:
                return None
            return figures

    few, many = run(sizes.few), run(sizes.many)
    if not few or not many:
        return {"failed": f"not all of {sizes.many} clients were up within 60 s"}
    more = many[0] - few[0]
    return {
        "cpu": (many[1] - few[1]) / more,
        "memory": (many[2] - few[2]) / more,
        "base": few[2],
        "emulator": many[3],
    }


def counts(field, tool, qos, sizes):
    """The tool's count of its messages, against an independent subscriber, and against mosquitto's own count."""
    directory = field.directory()
    with broker(directory) as (server, counter):
        heard = directory / "heard.txt"
        words = [host.program("mosquitto_sub"), "-p", server.port, "-q", qos, "-t", "rivals/#", "-F", "m"]
        subscriber = Program(words, directory, "subscriber", output=heard)
        time.sleep(0.5)
        work = tool.publish(server.port, qos, sizes.clients, sizes.counted[qos], directory)
        program = field.start("counts", work, server.port, directory).wait(TOOL_SECONDS)
        # A broker that is behind still reads what the tool wrote: two seconds in which nothing comes are its end.
        before = -1
        while (size := heard.stat().st_size) != before:
            before = size
            time.sleep(2)
        own = counter.more()
        subscriber.end()
        return {"says": work.says(program), "heard": heard.read_text().count("m"), "broker": own}


@contextlib.contextmanager
def proxy(server, folder, *faults):
    """`clamor proxy` before a server; yields its port."""
    output = folder / "proxy.txt"
    words = [clamor_path(), "proxy", f"127.0.0.1:{server.port}", "--quiet", *faults]
    program = Program(words, folder, "proxy", output=output)
    try:
        if not wait_until(lambda: re.search(r":\d+\s*$", output.read_text()), 10):
            sys.exit(f"{shlex.join(program.words)}: printed no port\n{program.text}")
        yield int(output.read_text().rsplit(":", 1)[1])
    finally:
        program.end()


def latency(field, tool, sizes, seconds, *faults, all_through=True):
    """The latencies that a tool reports, at a steady rate through a proxy with these faults.

    With `all_through` off subscribers that are a process of their own connect to the broker itself: the proxy's clock
    begins with its first client, which has to be a publisher.
    """
    directory = field.directory()
    with broker(directory) as (server, _), proxy(server, directory, *faults) as port:
        subscribers, says = None, None
        if hasattr(tool, "subscribe"):
            before = descriptors(server.pid)
            heard = port if all_through else server.port
            listening = tool.subscribe(heard, sizes.pairs, directory)
            subscribers = field.start("latency", listening, heard, directory, "subscribers")
            if not wait_until(lambda: descriptors(server.pid) - before >= sizes.pairs, 30):
                sys.exit(f"not all of {sizes.pairs} subscribers were up within 30 s")
            says = listening.says
        work = tool.pairs(port, sizes.pairs, sizes.interval, seconds, directory)
        program = field.start("latency", work, port, directory).wait(TOOL_SECONDS)
        if subscribers:
            # It prints once a second.
            time.sleep(1.5)
            return says(subscribers.end())
        return work.says(program)


def delay(field, tool, sizes):
    """The same with a delay, and without one."""
    held = ["--delay", f"{sizes.delay * 1000:.0f}ms"]
    return {
        "plain": latency(field, tool, sizes, sizes.delay_seconds),
        "delayed": latency(field, tool, sizes, sizes.delay_seconds, *held),
    }


def stall(field, tool, sizes):
    held = ["--stall", f"{sizes.stall}s@{sizes.stall_at}s"]
    return latency(field, tool, sizes, sizes.stall_seconds, *held, all_through=False)

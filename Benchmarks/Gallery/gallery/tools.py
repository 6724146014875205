"""Load tools as programs: the command line for a piece of work, and a reader of the tool's own figures."""

import dataclasses
import glob
import json
import os
import shutil

from . import host, outputs
from .servers import clamor_path

SIZE = 64
TOPIC = "rivals/%i"


@dataclasses.dataclass
class Work:
    """A command line, and a reader of the counts and latencies that the tool reports."""

    words: list
    says: object = None
    variables: dict = dataclasses.field(default_factory=dict)
    # By name, those that the command line reads.
    files: dict = dataclasses.field(default_factory=dict)


class Tool:
    # In flight per client at QoS 1 and 2, whatever the tool is asked for.
    window = 1
    qos = (0, 1, 2)
    # Work with one value of an option, beside that with the default: it takes part where the option matters.
    is_variant = False


class Clamor(Tool):
    name = "Clamor"

    def __init__(self, window=16):
        self.window = window
        self.is_variant = window != 16
        if self.is_variant:
            # At QoS 0 there is no window.
            self.name, self.qos = f"Clamor, window {window}", (1, 2)

    def is_installed(self):
        return True

    def version(self):
        return host.output(clamor_path(), "--version")

    def words(self, out, command, port, *words):
        return [
            clamor_path(),
            command,
            "-h",
            "127.0.0.1",
            "-p",
            port,
            "-V",
            4,
            *words,
            "--server-name",
            "off",
            "--quiet",
            "--no-page",
            "--out",
            out,
        ]

    def publish(self, port, qos, clients, messages, folder):
        window = ["-F", self.window] if qos else []
        words = ["-c", clients, "-q", qos, "-s", SIZE, *window, "-t", TOPIC, "-L", messages]
        return Work(self.words(folder / "run", "pub", port, *words), lambda program: self.sent(folder / "run"))

    @staticmethod
    def record(out):
        return json.loads((out / "run.json").read_text())

    def sent(self, out):
        return sum(metric["value"] for metric in self.record(out)["metrics"] if metric["name"] == "publish_sent")

    def connect(self, port, clients, rate, folder):
        words = ["-c", clients, "-R", f"{rate}/s", "--duration", "10m"]
        return Work(self.words(folder / "run", "conn", port, *words))

    def pairs(self, port, clients, interval, seconds, folder):
        words = ["-c", clients, "-q", 1, "-s", SIZE, "-I", interval, "-t", TOPIC, "--duration", f"{seconds}s"]
        return Work(self.words(folder / "run", "pubsub", port, *words), lambda program: self.latencies(folder / "run"))

    def latencies(self, out):
        def of(name):
            found = next(metric for metric in self.record(out)["metrics"] if metric["name"] == name and "p50" in metric)
            return {key: found[key] for key in ("mean", "p50", "p99", "max")}

        return {"acknowledgement": of("publish_ack_duration"), "delivery": of("delivery_duration")}


class Emqtt(Tool):
    name = "emqtt_bench"

    def is_installed(self):
        return bool(host.program("emqtt_bench"))

    def version(self):
        return os.environ.get("EMQTT_BENCH_VERSION", "not printed by the program")

    def words(self, command, port, *words):
        return [host.program("emqtt_bench"), command, "-h", "127.0.0.1", "-p", port, "-V", 4, *words]

    def publish(self, port, qos, clients, messages, folder):
        words = ["-c", clients, "-R", 1000, "-q", qos, "-s", SIZE, "-I", 0, "-F", 16, "-w", "-t", TOPIC, "-L", messages]
        return Work(self.words("pub", port, *words), lambda program: outputs.emqtt_counts(program.text).get("pub"))

    def connect(self, port, clients, rate, folder):
        return Work(self.words("conn", port, "-c", clients, "-R", rate))

    def subscribe(self, port, clients, folder):
        return Work(
            self.words("sub", port, "-c", clients, "-R", 1000, "-q", 1, "-t", TOPIC, "--payload-hdrs", "ts"),
            lambda program: {"delivery": outputs.emqtt_latency(program.text)},
        )

    def pairs(self, port, clients, interval, seconds, folder):
        """The publishers; the subscribers are a process of their own."""
        words = ["-c", clients, "-R", 1000, "-q", 1, "-s", SIZE, "-I", interval, "-t", TOPIC, "--payload-hdrs", "ts"]
        return Work(self.words("pub", port, *words, "-w", "-L", clients * seconds * 1000 // interval))


TSUNG = """<?xml version="1.0"?>
<!DOCTYPE tsung SYSTEM "/usr/share/tsung/tsung-1.0.dtd">
<tsung loglevel="warning" version="1.0">
  <clients><client host="localhost" use_controller_vm="true" maxusers="30000"/></clients>
  <servers><server host="127.0.0.1" port="{port}" type="tcp"/></servers>
  <load>
    <arrivalphase phase="1" duration="10" unit="minute">
      <users maxnumber="{clients}" arrivalrate="{rate}" unit="second"/>
    </arrivalphase>
  </load>
  <sessions>
    <session name="gallery" probability="100" type="ts_mqtt">
      <request><mqtt type="connect" clean_start="true" keepalive="300"></mqtt></request>
{body}
      <request><mqtt type="disconnect"></mqtt></request>
    </session>
  </sessions>
</tsung>
"""
TSUNG_PUBLISH = (
    f'<request><mqtt type="publish" topic="rivals/t" qos="{{qos}}" retained="false">{"x" * SIZE}</mqtt></request>'
)
TSUNG_LOOP = """      <for from="1" to="{loops}" incr="1" var="loop">
        {body}
      </for>"""


class Tsung(Tool):
    name = "tsung"
    # https://github.com/processone/tsung/issues/236
    qos = (0, 1)

    def __init__(self, names):
        # The port of an Erlang name server.
        self.names = names

    def is_installed(self):
        return bool(host.program("tsung"))

    def version(self):
        return host.package("tsung") or host.output("tsung", "-v")

    def work(self, folder, port, clients, rate, body, says=None):
        file = folder / "tsung.xml"
        file.write_text(TSUNG.format(port=port, clients=clients, rate=rate, body=body))
        words = [host.program("tsung"), "-n", "-w", 0, "-f", file, "-l", folder / "log", "start"]
        variables = {"HOME": str(folder), "ERL_EPMD_PORT": str(self.names)}
        return Work(words, says, variables, {"tsung.xml": file.read_text()})

    @staticmethod
    def log(folder):
        return "".join(open(path).read() for path in glob.glob(f"{folder}/log/*/tsung.log"))

    def publish(self, port, qos, clients, messages, folder):
        loop = TSUNG_LOOP.format(loops=messages // clients, body=TSUNG_PUBLISH.format(qos=qos))
        return self.work(
            folder,
            port,
            clients,
            1000,
            loop,
            lambda program: outputs.tsung_totals(self.log(folder)).get("mqtt_published"),
        )

    def connect(self, port, clients, rate, folder):
        return self.work(folder, port, clients, rate, '      <thinktime value="600"/>')

    def pairs(self, port, clients, interval, seconds, folder):
        """Publishers only: tsung measures a publish up to its PUBACK, which needs a transaction of its own."""
        publish = f'<transaction name="publish">{TSUNG_PUBLISH.format(qos=1)}</transaction>'
        pause = f'<thinktime value="{interval / 1000}" random="false"/>'
        loop = TSUNG_LOOP.format(loops=seconds * 1000 // interval, body=publish + pause)
        return self.work(
            folder,
            port,
            clients,
            1000,
            loop,
            lambda program: {"acknowledgement": outputs.tsung_sample(self.log(folder), "tr_publish")},
        )


class Library(Tool):
    """libmosquitto in the C program of `make limits`."""

    name = "libmosquitto"
    window = 16
    pairs = None

    @staticmethod
    def path():
        return os.environ.get("CLIMIT", str(host.ROOT / ".build/release/climit"))

    def is_installed(self):
        return bool(shutil.which(self.path()))

    def version(self):
        return host.package("libmosquitto1")

    def publish(self, port, qos, clients, messages, folder):
        words = ["--port", port, "--clients", clients, "--qos", qos, "--window", 16, "--size", SIZE]
        words += ["--topic", "rivals/", "--messages", messages, "--seconds", 0]
        return Work(
            [self.path(), "library", *words], lambda program: json.loads(program.text.splitlines()[-1])["messages"]
        )

    def connect(self, port, clients, rate, folder):
        return Work([self.path(), "library", "--port", port, "--clients", clients, "--seconds", 600])


def others_missing():
    """Tools that no work is written for."""
    if host.program("mqttx"):
        return {"MQTTX": f"{host.output('mqttx', '--version')}; there is no work for it here"}
    return {"MQTTX": "not installed here"}

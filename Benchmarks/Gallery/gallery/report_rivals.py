"""rivals.md and its pictures."""

from . import bars
from .document import Document, digits, duration, median, signed, spread, times, whole
from .outputs import delay_error, stall_truth
from .remarks_rivals import remarks

INTRODUCTION = [
    "Each tool does the same work against mosquitto {mosquitto} on the same host, one tool after the other.{rounds}",
    "",
    "- CPU is user and system time of the tool's processes. There are no rates. In closed loop on a shared host they"
    " are those of tool and broker together, and tsung looks for its end only every 5 s.",
    "- The cost of a message, of a connect and of an idle client is what many of them cost beyond few. The start of the"
    " tool and its virtual machine are left out.",
    "- A run in which other machines took over 10 % of the CPU was made again; what stayed disturbed is named.",
    "- Tools and mosquitto share the cores of the host. Compare the tools with each other, not with other hosts.",
    "- Payloads have 64 bytes. All tools but tsung speak MQTT 3.1.1; tsung speaks 3.1.",
]

FACTOR = "times Clamor's"


class Answers:
    def __init__(self, results):
        self.results = results

    def figures(self, tool, contest, part=""):
        """Of all rounds."""
        return [
            each["figures"]
            for each in self.results["answers"]
            if (each["tool"], each["contest"], each["part"]) == (tool, contest, part)
        ]

    def tools(self, contest, part=""):
        return [tool for tool in self.results["tools"] if self.figures(tool, contest, part)]

    def values(self, tool, contest, part, *path):
        found = []
        for figures in self.figures(tool, contest, part):
            for key in path:
                figures = (figures or {}).get(key)
            found.append(figures)
        return found

    def median(self, tool, contest, part, *path):
        return median(self.values(tool, contest, part, *path))

    def emulator(self, tool):
        """As it ran in the connects, where a tool is at rest for long enough to be looked at."""
        return next((each for each in self.values(tool, "connects", "", "emulator") if each), "–")

    def cell(self, tool, contest, part, *path, show=duration):
        return spread(self.values(tool, contest, part, *path), show)

    def times(self, tool, contest, part, key):
        """How many times Clamor's it is."""
        ours, theirs = self.median("Clamor", contest, part, key), self.median(tool, contest, part, key)
        return times(theirs / ours) if ours and theirs else "–"


class Report:
    def __init__(self, results, folder):
        self.answers, self.results, self.folder = Answers(results), results, folder
        self.sizes = results["sizes"]
        self.document = Document("Clamor beside other load tools")
        self.written = []

    def picture(self, name, title, groups, show, series=()):
        if not any(value for _, row in groups for value in row):
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"rivals-{name}.svg"
        path.write_text(bars.chart(title, groups, show, series))
        self.written.append(path)
        self.document.add(f"![{title}]({path.name})")

    def remarks(self, contest):
        self.document.list(remarks(self.answers, contest))

    def command(self, contest):
        lines = [line for text in self.results["lines"].get(contest, []) for line in text.splitlines()]
        self.document.add("<details><summary>Command lines</summary>", "", "```sh", *lines, "```", "", "</details>")

    def factors(self, columns, rows):
        """A table with factors, where there are rounds enough to carry them."""
        shown = [index for index, name in enumerate(columns) if name != FACTOR or self.results["rounds"] >= 3]
        chosen = [[row[index] for index in shown] for row in (columns, *rows)]
        self.document.table(chosen[0], chosen[1:], range(1, len(shown)))

    def messages(self):
        levels = [f"qos{qos}" for qos in (0, 1, 2) if self.answers.tools("messages", f"qos{qos}")]
        if not levels:
            return
        self.document.heading("CPU per message")
        self.document.add(
            f"{self.sizes['clients']} publishers in closed loop. Clamor and libmosquitto keep 16 messages in flight per"
            " client. emqtt_bench and tsung keep one, whatever they are asked for. *Clamor, window 1*"
            " compares with these."
        )
        tools = [tool for tool in self.results["tools"] if any(self.answers.tools("messages", each) for each in levels)]
        groups = [(tool, [self.answers.median(tool, "messages", each, "cpu") for each in levels]) for tool in tools]
        self.picture(
            "messages",
            "CPU of the tool per message",
            groups,
            duration,
            [each.replace("qos", "QoS ") for each in levels],
        )
        for level in levels:
            rows = [
                [
                    tool,
                    self.answers.cell(tool, "messages", level, "cpu"),
                    self.answers.times(tool, "messages", level, "cpu"),
                ]
                for tool in self.answers.tools("messages", level)
            ]
            self.document.heading(f"QoS {level[-1]}", 3)
            self.factors(["tool", "CPU a message", FACTOR], rows)
        self.remarks("messages")
        self.command("messages")

    def connects(self):
        tools = self.answers.tools("connects")
        if not tools:
            return
        few, many = self.sizes["few"], self.sizes["many"]
        self.document.heading("CPU per connect, memory per idle client")
        self.document.add(
            f"{whole(many)} clients connect and stay, {whole(self.sizes['rate'])} per second but for libmosquitto,"
            " which connects 64 at a time. CPU and resident memory are read once all are up, and those of a run with"
            f" {few} clients and the same length are subtracted. *Base*: memory with {few} clients."
        )
        groups = [(tool, [self.answers.median(tool, "connects", "", "memory")]) for tool in tools]
        self.picture("memory", "Memory per idle client", groups, lambda value: f"{digits(value / 1024)} KiB")
        rows = [
            [
                tool,
                self.answers.cell(tool, "connects", "", "cpu"),
                self.answers.times(tool, "connects", "", "cpu"),
                self.answers.cell(tool, "connects", "", "memory", show=lambda value: f"{digits(value / 1024)} KiB"),
                self.answers.times(tool, "connects", "", "memory"),
                self.answers.cell(tool, "connects", "", "base", show=lambda value: f"{digits(value / 2**20)} MiB"),
            ]
            for tool in tools
        ]
        self.factors(["tool", "CPU a connect", FACTOR, "memory a client", FACTOR, "base"], rows)
        self.remarks("connects")
        self.command("connects")

    def counts(self):
        rows = []
        for qos in (0, 1, 2):
            for tool in self.answers.tools("counts", f"qos{qos}"):
                for figures in self.answers.figures(tool, "counts", f"qos{qos}"):
                    said, heard = figures["says"], figures["heard"]
                    rows.append(
                        [
                            tool,
                            qos,
                            "prints none" if said is None else whole(said),
                            whole(heard),
                            "–" if qos == 2 else whole(figures["broker"]),
                            "–" if said is None else f"{said - heard:+,}" if said != heard else "0",
                        ]
                    )
        if not rows:
            return
        self.document.heading("Counts")
        counted = ", ".join(f"{whole(count)} messages at QoS {qos}" for qos, count in enumerate(self.sizes["counted"]))
        self.document.add(
            f"Each tool is to publish {counted}. Its own count is compared with an independent subscriber"
            " (`mosquitto_sub` at the same QoS), and with mosquitto's `$SYS` count, which leaves out QoS 2."
        )
        columns = ["tool", "QoS", "the tool's count", "subscriber", "mosquitto", "error"]
        self.document.table(columns, rows, range(1, 6))
        self.remarks("counts")
        self.command("counts")

    def delay(self):
        tools = self.answers.tools("delay")
        if not tools:
            return
        true = self.sizes["delay"]
        self.document.heading("A known delay")
        self.document.add(
            f"{self.sizes['pairs']} publishers send every {self.sizes['interval']} ms at QoS 1. `clamor proxy --delay"
            f" {true * 1000:.0f}ms` holds all that the server sends. *Error* is the reported latency with the delay"
            f" less that through the same proxy without it, less {duration(true)}; of several rounds the median."
            " *Noise* is by how much the latency without the delay differs between rounds; no smaller error means"
            " anything."
        )
        rows = []
        for tool in tools:
            for kind in ("acknowledgement", "delivery"):
                for figure in ("p50", "mean"):
                    plain, held = (
                        self.answers.values(tool, "delay", "", part, kind, figure) for part in ("plain", "delayed")
                    )
                    found = delay_error(tool, true, plain, held)
                    if not found:
                        continue
                    error, noise, resolution = found
                    cells = [spread(each, duration) for each in (plain, held)]
                    noise = duration(max(noise, resolution)) if noise is not None else "–"
                    rows.append([tool, f"{kind}, {figure}", *cells, signed(error, resolution), noise])
        columns = ["tool", "figure", "without", "with", "error", "noise"]
        self.document.table(columns, rows, range(2, 6))
        self.remarks("delay")

    def stall(self):
        tools = self.answers.tools("stall")
        if not tools:
            return
        length, seconds = self.sizes["stall"], self.sizes["stall_seconds"]
        true = stall_truth(length, seconds)
        self.document.heading("A known stall")
        self.document.add(
            f"The same load for {seconds} s, in which the proxy stops once, for {length} s. The truth follows from the"
            " schedule: a message that was due in the stall waits until the stall ends. A tool that waits for an answer"
            " before it sends its next message leaves such messages out: *coordinated omission*."
        )
        rows = [["**truth**", "response time", *(duration(true[key]) for key in ("mean", "p99", "max"))]]
        groups = [("truth", [true["mean"]])]
        for tool in tools:
            for kind in ("acknowledgement", "delivery"):
                if self.answers.median(tool, "stall", "", kind, "mean") is None:
                    continue
                cells = [self.answers.cell(tool, "stall", "", kind, key) for key in ("mean", "p99", "max")]
                rows.append([tool, kind, *cells])
                groups.append((f"{tool}, {kind[:3]}.", [self.answers.median(tool, "stall", "", kind, "mean")]))
        self.picture("stall", "Mean latency of a run with a stall", groups, duration)
        self.document.table(["tool", "figure", "mean", "p99", "max"], rows, range(2, 5))
        self.remarks("stall")
        self.command("latency")

    def head(self):
        rounds = self.results["rounds"]
        options = "" if rounds == 3 else f" RIVALS='--rounds {rounds}'"
        if self.results["quick"]:
            options = " RIVALS=--quick"
        text = (
            f" Each contest has {rounds} rounds, the tools in turn; figures are medians, with the lowest and the"
            " highest in brackets. Counts have one round."
            if rounds > 1
            else ""
        )
        quick = " **A quick run: its figures mean little.**" if self.results["quick"] else ""
        self.document.add(
            f"Made by `make rivals{options}`.{quick}",
            *(line.format(rounds=text, mosquitto=self.results["mosquitto"]) for line in INTRODUCTION),
        )
        self.document.heading("Host and tools")
        self.document.table(["", ""], self.results["host"])
        rows = [[tool, version, self.answers.emulator(tool)] for tool, version in self.results["versions"].items()]
        self.document.table(["tool", "version", "Erlang/OTP, and options of its emulator"], rows)
        if self.results["problems"]:
            self.document.add("Not answered:")
            self.document.list(self.results["problems"])

    def write(self):
        self.head()
        self.messages()
        self.connects()
        self.counts()
        if self.answers.tools("delay") or self.answers.tools("stall"):
            self.delay()
            self.stall()
        path = self.folder / "rivals.md"
        self.document.write(path)
        return [path, *self.written]


def write(results, folder):
    return Report(results, folder).write()

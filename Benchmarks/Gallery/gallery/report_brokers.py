"""brokers.md and its pictures."""

from . import bars, drains
from .document import Document, duration, median, whole
from .remarks_brokers import remarks
from .tables_brokers import (
    CAPACITY_COLUMNS,
    Answers,
    capacity_rows,
    clients_table,
    drain_rate,
    drain_table,
    fan_out_table,
    load,
    muc_table,
    overview,
)

INTRODUCTION = [
    "Each server gets the same loads from the same host, one server at a time, on loopback.",
    "{rounds}",
    "",
    "- Load and server share the cores of the host. The figures compare servers under these conditions. They are not"
    " the limits of a server on a machine of its own.",
    "- Response times count from when a message was due, so that a server that falls behind cannot hide it.",
    "- A run is *generator-limited* if the load could not be offered as planned: the generator or its host was the"
    " limit. Such a figure is a lower bound for the server.",
    "- Where other machines took over 10 % of the host's CPU in a run, or in the steps that decided a search, the"
    " question was asked again. What stayed disturbed is named.",
    "- The CPU of ejabberd and RabbitMQ includes the busy waiting of Erlang's schedulers.",
    "- All clients speak MQTT 3.1.1, since RabbitMQ 3.10 has no MQTT 5.",
]


def middle(key):
    """The median of all rounds."""
    return lambda rounds: duration(median(each.get(key) for each in rounds))


def largest(rounds):
    """A search is part of one round only."""
    return load(rounds[0])


# Column, question, and how its rounds are shown.
OVERVIEW = {
    "mqtt": [
        ("connect p99", "storm", middle("p99")),
        ("QoS 0", "qos0", largest),
        ("QoS 1", "qos1", largest),
        ("QoS 2", "qos2", largest),
        ("fan-out p99", "fan-out", middle("p99")),
        ("backlog", "drain", drain_rate),
    ],
    "xmpp": [
        ("login p99", "login", middle("p99")),
        ("chat messages", "message", largest),
        ("room, last occupant p50", "muc", middle("last_p50")),
    ],
}


class Report:
    def __init__(self, results, folder):
        self.answers, self.results, self.folder = Answers(results), results, folder
        self.document = Document("MQTT brokers and XMPP servers compared")
        self.written = []

    def picture(self, name, title, groups, show, series=(), log=False):
        if not any(value for _, row in groups for value in row):
            return
        path = self.folder / f"brokers-{name}.svg"
        self.folder.mkdir(parents=True, exist_ok=True)
        path.write_text(bars.chart(title, groups, show, series, log))
        self.written.append(path)
        self.document.add(f"![{title}]({path.name})")

    def groups(self, protocol, question, *keys):
        return [
            (server["title"], [self.answers.median(server["name"], question, key) for key in keys])
            for server in self.answers.asked(protocol, question)
        ]

    def remarks(self, *questions):
        self.document.list(remarks(self.answers, questions))

    def command(self, *questions):
        """The lines of the questions, as each server got them."""
        lines = [line for question in questions for line in self.results["lines"].get(question, [])]
        self.document.add("<details><summary>Command lines</summary>", "", "```sh", *lines, "```", "", "</details>")

    def storm(self, protocol, question, text, name):
        if not self.answers.asked(protocol, question):
            return
        self.document.add(text)
        title = "Login, p50 and p99" if protocol == "xmpp" else "Connect, p50 and p99"
        groups = self.groups(protocol, question, "p50", "p99")
        self.picture(name, title, groups, duration, ("p50", "p99"), log=True)
        self.document.table(*clients_table(self.answers, protocol, question))
        self.remarks(question)
        self.command(question)

    def capacity(self):
        questions = [name for name in ("qos0", "qos1", "qos2") if self.answers.asked("mqtt", name)]
        if not questions:
            return
        self.document.heading("Capacity", 3)
        self.document.add(
            "The highest rate at which 50 publishers reach 50 subscribers, each its own, with a delivery p99 below 50"
            " ms and nothing lost. Payloads have 64 bytes. *Interval*: all loads up to its low end held each time, and"
            " all from its high end on broke. The CPU is that of the largest load that held. Each search is made once."
        )
        groups = [
            (server["title"], [self.answers.median(server["name"], name, "load") for name in questions])
            for server in self.results["servers"]["mqtt"]
        ]
        title = "Largest load that held, messages per second"
        self.picture(
            "capacity",
            title,
            groups,
            lambda value: f"{whole(value)}/s",
            [name.replace("qos", "QoS ") for name in questions],
            log=True,
        )
        for name in questions:
            self.document.heading(f"QoS {name[-1]}", 4)
            self.document.table(CAPACITY_COLUMNS, capacity_rows(self.answers, "mqtt", name), range(1, 7))
            self.remarks(name)
        self.command(*questions)

    def fan_out(self):
        if not self.answers.asked("mqtt", "fan-out"):
            return
        self.document.heading("Fan-out", 3)
        self.document.add(
            f"One publisher, {self.subscribers} subscribers of its topic, QoS 1, 5 messages per second. The last of the"
            " subscribers waits until the server has written to all others. So p99 is about the time of one fan-out,"
            " where the server keeps up."
        )
        self.picture(
            "fan-out",
            "Delivery to all subscribers, p50 and p99",
            self.groups("mqtt", "fan-out", "p50", "p99"),
            duration,
            ("p50", "p99"),
            log=True,
        )
        self.document.table(*fan_out_table(self.answers))
        self.remarks("fan-out")
        self.command("fan-out")

    def drained(self, server):
        found = drains.bound(self.answers.figures(server["name"], "drain"))
        return found[1] if found and found[0] == "at least" else None

    @property
    def subscribers(self):
        return whole(self.results["sizes"]["subscribers"])

    def drain(self):
        if not self.answers.asked("mqtt", "drain"):
            return
        self.document.heading("Persistent sessions", 3)
        self.document.add(
            "50 subscribers with persistent sessions leave. The server stores the messages at QoS 1 that arrive for"
            " them. Then all subscribers return at once. *Time* is from their return until the backlog had arrived. It"
            " is read every 50 ms in the first 2 s, then every second, so it is known between two readings: from the"
            " shortest to the longest of all rounds. *Messages* is the backlog by the longest. *Lost* is of all"
            " messages of the run."
        )
        self.picture(
            "drain",
            "Backlog of persistent sessions, messages per second at least",
            [(server["title"], [self.drained(server)]) for server in self.answers.asked("mqtt", "drain")],
            lambda value: f"{whole(value)}/s",
            log=True,
        )
        self.document.table(*drain_table(self.answers))
        self.remarks("drain")
        self.command("drain")

    def xmpp(self):
        self.document.heading("XMPP")
        self.document.table(*overview(self.answers, "xmpp", OVERVIEW["xmpp"]))
        if self.answers.asked("xmpp", "login"):
            self.document.heading("Login storm", 3)
        self.storm(
            "xmpp", "login", "Logins at a fixed rate, over TCP without TLS, from connect to bound resource.", "login"
        )
        if self.answers.asked("xmpp", "message"):
            self.document.heading("Message capacity", 3)
            self.document.add(
                "The highest rate of chat messages between pairs of clients with a delivery p99 below 50 ms and no"
                " loss."
            )
            self.picture(
                "message",
                "Largest load that held, chat messages per second",
                self.groups("xmpp", "message", "load"),
                lambda value: f"{whole(value)}/s",
            )
            self.document.table(CAPACITY_COLUMNS, capacity_rows(self.answers, "xmpp", "message"), range(1, 7))
            self.remarks("message")
            self.command("message")
        if self.answers.asked("xmpp", "muc"):
            self.document.heading("Room", 3)
            occupants = whole(self.results["sizes"]["occupants"])
            self.document.add(f"One room of {occupants} occupants, 5 messages per second, each to all occupants.")
            self.picture(
                "muc",
                "Message in a room: first and last occupant, p50",
                self.groups("xmpp", "muc", "first_p50", "last_p50"),
                duration,
                ("first", "last"),
            )
            self.document.table(*muc_table(self.answers))
            self.remarks("muc")
            self.command("muc")

    def head(self):
        rounds = self.results["rounds"]
        options = "" if rounds == 3 else f" GALLERY='--rounds {rounds}'"
        if self.results["quick"]:
            options = " GALLERY=--quick"
        text = (
            "Each question but capacity was asked in one round."
            if rounds == 1
            else f"Each question but capacity was asked in {rounds} rounds, each of a fresh server. Figures are"
            " medians, with the lowest and the highest in brackets."
        )
        quick = " **A quick run: its figures mean little.**" if self.results["quick"] else ""
        made = f"Made by `make gallery{options}`.{quick}"
        self.document.add(made, *(line.format(rounds=text) for line in INTRODUCTION))
        self.document.heading("Host and servers")
        self.document.table(["", ""], self.results["host"])
        rows = {
            each["name"]: [each["title"], each["version"] or "unknown", each["settings"]]
            for protocol in ("xmpp", "mqtt")
            for each in self.results["servers"][protocol]
        }
        self.document.table(["server", "version", "settings"], rows.values())
        if self.results["missing"]:
            self.document.add(f"Not installed here: {', '.join(self.results['missing'])}.")
        if self.results["problems"]:
            self.document.add("Not answered:")
            self.document.list(self.results["problems"])

    def write(self):
        self.head()
        if self.results["servers"]["mqtt"]:
            self.document.heading("MQTT")
            self.document.table(*overview(self.answers, "mqtt", OVERVIEW["mqtt"]))
            if self.answers.asked("mqtt", "storm"):
                self.document.heading("Connect storm", 3)
            self.storm("mqtt", "storm", "Clients connect at a fixed rate, without TLS, and stay.", "connect")
            self.capacity()
            self.fan_out()
            self.drain()
        if any(self.answers.asked("xmpp", name) for name in ("login", "message", "muc")):
            self.xmpp()
        path = self.folder / "brokers.md"
        self.document.write(path)
        return [path, *self.written]


def write(results, folder):
    return Report(results, folder).write()

"""The answers of servers, and their tables in brokers.md."""

from . import drains
from .document import digits, duration, median, percent, spread, whole
from .limits import Limit, disturbance, limit


class Answers:
    def __init__(self, results):
        self.results = results

    def figures(self, server, question):
        """Of all rounds."""
        return [
            answer["figures"]
            for answer in self.results["answers"]
            if (answer["server"], answer["question"]) == (server, question)
        ]

    def values(self, server, question, key):
        return [figures.get(key) for figures in self.figures(server, question)]

    def median(self, server, question, key):
        return median(self.values(server, question, key))

    def asked(self, protocol, question):
        """Those servers of a protocol that answered."""
        return [each for each in self.results["servers"][protocol] if self.figures(each["name"], question)]


def cell(answers, server, question, key, show):
    return spread(answers.values(server, question, key), show)


def verdict(figures):
    """The verdicts of the rounds, the worst first, and how often."""
    states = [each["verdict"] for each in figures]
    order = ["aborted", "unreconciled", "generator-limited", "valid"]
    found = [state for state in order if state in states]
    if len(found) == 1:
        return found[0]
    return ", ".join(f"{state} ({states.count(state)} of {len(states)})" for state in found)


def clients_table(answers, protocol, question):
    rows = []
    for server in answers.asked(protocol, question):
        name = server["name"]
        figures = answers.figures(name, question)
        rows.append(
            [
                server["title"],
                cell(answers, name, question, "p50", duration),
                cell(answers, name, question, "p99", duration),
                share(figures, "failures", "clients"),
                duration(answers.median(name, question, "cpu_per_connect")),
                size(answers.median(name, question, "memory")),
                verdict(figures),
            ]
        )
    columns = ["server", "p50", "p99", "failed", "server's CPU a client", "memory a client", "verdict"]
    return columns, rows, range(1, 6)


def size(value):
    if value is None:
        return "–"
    return f"{digits(value / 1024)} KiB"


def load(figures):
    held, high = figures["load"], figures["high"]
    if held is None:
        return f"below {whole(high)}/s" if high is not None else "not known"
    return f"{whole(held)}/s" if figures["kind"] == "found" else f"at least {whole(held)}/s"


def interval(figures):
    low, high = figures["low"], figures["high"]
    return f"{whole(low)} to {whole(high)}/s" if low is not None and high is not None else "–"


def limit_cell(figures, cores):
    found = limit(figures, cores)
    return f"{found.value}: {disturbance(figures)}" if found == Limit.UNCLEAR else found.value


def capacity_rows(answers, protocol, question):
    rows = []
    for server in answers.asked(protocol, question):
        for figures in answers.figures(server["name"], question):
            rows.append(
                [
                    server["title"],
                    load(figures),
                    interval(figures),
                    duration(figures.get("p99")),
                    duration(figures.get("cpu_per_message")),
                    percent(figures.get("server_cores")),
                    percent(figures.get("generator_cores")),
                    limit_cell(figures, answers.results["cores"]),
                ]
            )
    return rows


def overview(answers, protocol, parts):
    """One row for each server; a part is a column's name, a question and how its rounds are shown."""
    asked = [part for part in parts if answers.asked(protocol, part[1])]
    rows = []
    for server in answers.results["servers"][protocol]:
        cells = []
        for _, question, show in asked:
            figures = answers.figures(server["name"], question)
            cells.append(show(figures) if figures else "–")
        rows.append([server["title"], *cells])
    return ["server", *(part[0] for part in asked)], rows, range(1, len(asked) + 1)


CAPACITY_COLUMNS = [
    "server",
    "messages",
    "interval",
    "delivery p99",
    "server's CPU a message",
    "server, of a core",
    "load, of a core",
    "limit",
]


def fan_out_table(answers):
    rows = []
    for server in answers.asked("mqtt", "fan-out"):
        name = server["name"]
        figures = answers.figures(name, "fan-out")
        rows.append(
            [
                server["title"],
                *(cell(answers, name, "fan-out", key, duration) for key in ("p50", "p99")),
                lost(figures),
                duration(answers.median(name, "fan-out", "cpu_per_message")),
                verdict(figures),
            ]
        )
    return ["server", "delivery p50", "delivery p99", "lost", "server's CPU a delivery", "verdict"], rows, range(1, 5)


def lost(figures):
    return share(figures, "lost", "expected")


def share(figures, part, of):
    """Sums over all rounds."""
    if not any(each[of] for each in figures):
        return "–"
    return " of ".join(whole(sum(each[key] for each in figures)) for key in (part, of))


def drain_table(answers):
    rows = []
    for server in answers.asked("mqtt", "drain"):
        name = server["name"]
        figures = answers.figures(name, "drain")
        rows.append(
            [
                server["title"],
                cell(answers, name, "drain", "backlog", whole),
                drain_time(figures),
                drain_rate(figures),
                lost(figures),
                whole(sum(each["duplicated"] for each in figures)),
                verdict(figures),
            ]
        )
    columns = ["server", "backlog", "time", "messages", "lost", "duplicated", "verdict"]
    return columns, rows, range(1, 6)


def drain_time(figures):
    """From the shortest to the longest time that the rounds allow."""
    if not drains.bound(figures):
        return "–"
    if not all(each["seconds"] for each in figures):
        return f"over {duration(min(each['watched'] for each in figures if not each['seconds']))}"
    lows, highs = zip(*(each["seconds"] for each in figures))
    return f"{duration(min(lows)) if min(lows) else 0} to {duration(max(highs))}"


def drain_rate(figures):
    found = drains.bound(figures)
    return f"{found[0]} {whole(found[1])}/s" if found else "–"


def muc_table(answers):
    rows = []
    for server in answers.asked("xmpp", "muc"):
        name = server["name"]
        figures = answers.figures(name, "muc")
        rows.append(
            [
                server["title"],
                *(cell(answers, name, "muc", key, duration) for key in ("first_p50", "last_p50", "p99", "join_p99")),
                lost(figures),
                verdict(figures),
            ]
        )
    columns = ["server", "first occupant p50", "last occupant p50", "delivery p99", "join p99", "lost", "verdict"]
    return columns, rows, range(1, 6)

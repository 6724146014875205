"""Explanations of surprising figures of servers; each is printed only where its condition holds."""

from . import drains
from .document import digits, duration, percent, times, whole
from .limits import FULL, is_stolen
from .questions import FAN_RATE
from .remarks_searches import SEARCHES, met, wide
from .servers import IN_FLIGHT

CONNECTS = ("storm", "login")
FANS = {"fan-out": "subscribers", "muc": "occupants"}

# Why a server differs from the others, by server and question; printed where `stands_out` holds.
REASONS = {
    ("ejabberd", "storm"): "It checks a password in its database, and starts an Erlang process for each connection. The"
    " other servers accept anonymous clients here.",
    ("rabbitmq", "storm"): "Each of its MQTT connections is a connection and a channel of AMQP as well, with several"
    " Erlang processes.",
    ("ejabberd", "fan-out"): "Each of its sessions is an Erlang process of its own, which gets the message, sends it"
    " and handles the acknowledgement.",
    ("rabbitmq", "fan-out"): "Each of its subscribers has a queue of its own. A message is routed to all of them, and"
    " each passes it through a channel of AMQP.",
}
ERLANG = ("ejabberd", "rabbitmq")


def best(answers, question, key):
    """The lowest median of all servers that were asked."""
    found = [
        answers.median(each["name"], question, key)
        for protocol in answers.results["servers"].values()
        for each in protocol
    ]
    return min((value for value in found if value), default=None)


def stands_out(answers, server, question):
    """Its p99 is five times that of the fastest server.

    How many times is said only where the rounds carry it, and where it does not grow with the length of the run.
    """
    if (server, question) not in REASONS:
        return None
    own, lowest = answers.median(server, question, "p99"), best(answers, question, "p99")
    if not own or not lowest or own < 5 * lowest:
        return None
    is_steady = not any(rule(answers, server, question) for rule in (failures, full_by_connects, behind))
    factor = f"{times(own / lowest)} times" if answers.results["rounds"] >= 3 and is_steady else "far above"
    return f"p99 is {factor} the lowest. {REASONS[server, question]}"


def failures(answers, server, question):
    rounds = answers.figures(server, question) if question in CONNECTS else ()
    failed = [each for each in rounds if each["failures"]]
    if not failed:
        return None
    most = max(failed, key=lambda each: each["failures"])
    return (
        f"{whole(most['failures'])} of {whole(most['clients'])} clients failed in one of {len(rounds)} rounds"
        f" ({', '.join(most['errors'])}). Its times are those of the others."
    )


def full_by_connects(answers, server, question):
    rate = answers.results["sizes"].get({"storm": "storm_rate", "login": "login_rate"}.get(question))
    cpu = answers.median(server, question, "cpu_per_connect")
    p99 = answers.median(server, question, "p99")
    # Erlang's schedulers wait busily: CPU alone does not say that clients waited.
    if not rate or not cpu or cpu * rate < FULL or not p99 or p99 < 0.05:
        return None
    text = (
        f"One client takes {duration(cpu)} of the server's CPU, and {whole(rate)} per second want {digits(cpu * rate)}"
        f" of {answers.results['cores']} cores. Clients wait for each other"
    )
    if cpu * rate < answers.results["cores"]:
        return f"{text}."
    return f"{text}, the longer the more of them have come: its p50 and p99 grow with the number of clients."


def behind(answers, server, question):
    """A message waits longer than until the next one is due: a queue grows as long as the run goes on."""
    p50 = answers.median(server, question, "p50")
    if question not in FANS or not p50 or p50 < 1 / FAN_RATE:
        return None
    rate = FAN_RATE * answers.results["sizes"][FANS[question]]
    cpu = answers.median(server, question, "cpu_per_message")
    used = (
        f" At {duration(cpu)} of its CPU each they want {digits(cpu * rate)} of {answers.results['cores']} cores, and"
        " the clients want some, too."
        if cpu
        else ""
    )
    return (
        f"It could not carry {whole(rate)} deliveries per second.{used} Messages queue, and its p50 and p99 grow as the"
        " run goes on."
    )


def stolen(answers, server, question):
    """Answers that were disturbed each time that they were asked; of a search the limit says it."""
    if question in SEARCHES:
        return None
    shares = [each["stolen"] for each in answers.figures(server, question) if is_stolen(each)]
    if not shares:
        return None
    rounds = len(answers.figures(server, question))
    return (
        f"other machines took up to {percent(max(shares))} of the host's CPU in {len(shares)} of {rounds} rounds,"
        " repetitions included. Its times are upper bounds."
    )


def password(answers, server, question):
    cpu = answers.median(server, question, "cpu_per_connect")
    if question != "login" or not cpu or cpu < 0.002:
        return None
    return (
        "The client logs in by SCRAM, and the accounts here have their password in clear. So the server derives the"
        f" keys from it, thousands of hashes, at each login: {duration(cpu)} of CPU."
        " Accounts with stored keys avoid that."
    )


def memory(answers, server, question):
    value = answers.median(server, question, "memory")
    if question not in CONNECTS or not value or value < 50_000:
        return None
    text = f"It grows by {whole(value / 1024)} KiB a client."
    if server in ERLANG:
        text += " Erlang processes have heaps of their own, and while logins go on these hold garbage as well."
    return text


def acknowledged(answers, server, question):
    plain, own = (answers.median(server, each, "load") for each in ("qos0", question))
    if (server, question) != ("rabbitmq", "qos1") or not plain or not own or own > plain / 2:
        return None
    return "at QoS 1 the plugin waits for AMQP's confirmation by the queue before it acknowledges."


def limited(answers, server, question):
    """Runs at a fixed load whose generator was late."""
    if question in SEARCHES:
        return None
    figures = answers.figures(server, question)
    late = [each for each in figures if each["verdict"] == "generator-limited"]
    if not late:
        return None
    text = f"the generator or its host was late in {len(late)} of {len(figures)} rounds: {late[0]['reasons'][0]}."
    if question == "drain" and any(each["lost"] for each in figures):
        text += " The loss is a count and holds all the same."
    return text


def unreconciled(answers, server, question):
    if question in SEARCHES:
        return None
    found = [each for each in answers.figures(server, question) if each["verdict"] in ("unreconciled", "aborted")]
    return f"{found[0]['verdict']}: {'; '.join(found[0]['reasons'])}." if found else None


def slow_drain(answers, server, question):
    if question != "drain" or server != "rabbitmq":
        return None
    own, other = (slowest(answers, each) for each in (server, "mosquitto"))
    if own is None or other is None or own[0] < 2 * other[1]:
        return None
    return "its persistent sessions are durable queues on disk. mosquitto keeps all in memory here."


def slowest(answers, server):
    """Between which seconds the slowest round's drain ended; infinite where it did not."""
    rounds = answers.figures(server, "drain")
    if not drains.bound(rounds):
        return None
    return max((each["seconds"] or [each["watched"], float("inf")] for each in rounds), key=lambda ends: ends[1])


# The embedded broker's `maximumInFlight`, and the pairs of `clamor init session-drain`.
EMBEDDED_IN_FLIGHT, SUBSCRIBERS = 1024, 50


def window(answers, server, question):
    """Why the embedded broker drains faster than mosquitto."""
    if question != "drain" or server != "embedded":
        return None
    own, other = (slowest(answers, each) for each in (server, "mosquitto"))
    each = (answers.median(server, question, "backlog") or 0) / SUBSCRIBERS
    if own is None or other is None or 2 * own[1] > other[0] or not IN_FLIGHT < each <= EMBEDDED_IN_FLIGHT:
        return None
    return (
        f"it sends up to {whole(EMBEDDED_IN_FLIGHT)} messages to a client before it waits for acknowledgements, and so"
        f" all {whole(each)} that each subscriber missed. mosquitto waits after {IN_FLIGHT}, as it is set here."
    )


def drain_loss(answers, server, question):
    lost = sum(each["lost"] for each in answers.figures(server, question)) if question in ("drain", "fan-out") else 0
    return f"{whole(lost)} messages were acknowledged to their publisher and never arrived." if lost else None


def twice(answers, server, question):
    duplicated = sum(each["duplicated"] for each in answers.figures(server, question)) if question == "drain" else 0
    if not duplicated:
        return None
    return (
        f"{whole(duplicated)} messages came twice, as QoS 1 permits: the server sends again what a subscriber had not"
        " acknowledged when it left."
    )


def together(answers, server, question):
    first, last = (answers.median(server, question, key) for key in ("first_p50", "last_p50"))
    if question != "muc" or not first or not last or first < 0.7 * last:
        return None
    return (
        f"the first occupant waits nearly as long as the last, {duration(first)} and {duration(last)}: the server"
        " handles a message for all occupants before it writes to any of them."
    )


def joins(answers, server, question):
    value = answers.median(server, question, "join_p99")
    if question != "muc" or not value or value < 1:
        return None
    return (
        f"p99 of a join is {duration(value)}. Joins compete with the logins that go on, and each new occupant gets"
        " the presence of all others, who each get its own."
    )


RULES = [
    failures,
    stands_out,
    full_by_connects,
    behind,
    password,
    memory,
    met,
    wide,
    acknowledged,
    limited,
    stolen,
    unreconciled,
    slow_drain,
    window,
    drain_loss,
    twice,
    together,
    joins,
]


def remarks(answers, questions):
    """For each server that was asked, in the order of the tables."""
    lines = []
    for question in questions:
        protocol = "xmpp" if question in ("login", "message", "muc") else "mqtt"
        for server in answers.asked(protocol, question):
            found = [text for text in (rule(answers, server["name"], question) for rule in RULES) if text]
            lines += [
                f"{server['title']}: {text[0].lower() if text[1:2].islower() else text[0]}{text[1:]}" for text in found
            ]
    return lines

"""Explanations of surprising figures of servers; each is printed only where its condition holds."""

from .document import digits, duration, percent, whole
from .tables_brokers import DISTURBANCE

SEARCHES = ("qos0", "qos1", "qos2", "message")
CONNECTS = ("storm", "login")

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
ONE_THREAD = {
    "mosquitto": "mosquitto has one thread.",
    "embedded": "The embedded broker has one thread for all clients.",
    "prosody": "prosody has one thread.",
}


def best(answers, question, key):
    """The lowest median of all servers that were asked."""
    found = [
        answers.median(each["name"], question, key)
        for protocol in answers.results["servers"].values()
        for each in protocol
    ]
    return min((value for value in found if value), default=None)


def stands_out(answers, server, question):
    """Its p99 is five times that of the fastest server."""
    if (server, question) not in REASONS:
        return None
    own, lowest = answers.median(server, question, "p99"), best(answers, question, "p99")
    if not own or not lowest or own < 5 * lowest:
        return None
    return f"p99 is {digits(own / lowest)} times the lowest. {REASONS[server, question]}"


def failures(answers, server, question):
    figures = [each for each in answers.figures(server, question) if each.get("failures")]
    if question not in CONNECTS or not figures:
        return None
    return f"{whole(figures[0]['failures'])} clients failed in one round: {', '.join(figures[0]['errors'])}."


def full_by_connects(answers, server, question):
    rate = answers.results["sizes"].get({"storm": "storm_rate", "login": "login_rate"}.get(question))
    cpu = answers.median(server, question, "cpu_per_connect")
    p99 = answers.median(server, question, "p99")
    # Erlang's schedulers wait busily: CPU alone does not say that clients waited.
    if not rate or not cpu or cpu * rate < 0.8 or not p99 or p99 < 0.05:
        return None
    return (
        f"One client takes {duration(cpu)} of the server's CPU, and {whole(rate)} per second take {digits(cpu * rate)}"
        " cores. Clients wait for each other."
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


def limit(answers, server, question):
    for figures in answers.figures(server, question) if question in SEARCHES else ():
        held = f"{whole(figures['load'])}/s" if figures.get("load") else "no load"
        if figures["kind"] == "generator-limited":
            reason = f" ({figures['reason'].rstrip('.')})" if figures.get("reason") else ""
            return f"the generator was the limit{reason}. The server held {held}, and its own limit is not known."
        if figures["kind"] == "nothing-holds":
            return f"no load held: {figures.get('broken') or 'the objectives broke at once'}."
        if figures["kind"] == "interrupted":
            broke = f", and {whole(figures['high'])}/s broke" if figures.get("high") else ""
            seconds = answers.results["sizes"]["search_seconds"]
            return f"the search was ended after {seconds} s. The server held {held}{broke}. A longer one narrows that."
        if figures["kind"] == "at-least":
            return f"all loads held, up to the highest that was offered, {held}."
    return None


def full(answers, server, question):
    """Of what there is of CPU, who had it at the largest load that held."""
    if question not in SEARCHES:
        return None
    own, load = (answers.median(server, question, key) for key in ("server_cores", "generator_cores"))
    if own is None or load is None or answers.figures(server, question)[0]["kind"] != "found":
        return None
    others = answers.median(server, question, "others")
    if others and others > DISTURBANCE:
        return (
            f"other work used {digits(others)} of {answers.results['cores']} cores of the host meanwhile. The figure is"
            " a lower bound."
        )
    if server in ONE_THREAD and own > 0.8:
        return f"it used {percent(own)} of a core at that load. {ONE_THREAD[server]}"
    if own + load > 0.8 * answers.results["cores"]:
        return (
            f"server and clients used {digits(own + load)} of {answers.results['cores']} cores at that load. The host"
            " was the limit: on a machine of its own the server carries more."
        )
    if own + load < 0.6 * answers.results["cores"]:
        return (
            f"server and clients used {digits(own + load)} of {answers.results['cores']} cores at that load. p99 broke"
            " first: pauses of the server lasted too long before the CPU was full."
        )
    return None


def wide(answers, server, question):
    for figures in answers.figures(server, question) if question in SEARCHES else ():
        low, high = figures.get("low"), figures.get("high")
        # Between the edges of an ended search nothing may have been offered.
        if figures["kind"] == "found" and low and high and high > 1.3 * low:
            return f"loads from {whole(low)} to {whole(high)}/s held in one step and broke in another."
    return None


def acknowledged(answers, server, question):
    plain, own = (answers.median(server, each, "load") for each in ("qos0", question))
    if (server, question) != ("rabbitmq", "qos1") or not plain or not own or own > plain / 2:
        return None
    return (
        "at QoS 1 the plugin waits for AMQP's confirmation by the queue before it acknowledges."
    )


def limited(answers, server, question):
    """Runs at a fixed load whose generator was late."""
    if question in SEARCHES:
        return None
    figures = answers.figures(server, question)
    late = [each for each in figures if each["verdict"] == "generator-limited"]
    if not late:
        return None
    text = f"the generator or its host was late in {len(late)} of {len(figures)} rounds: {late[0]['reasons'][0]}."
    if question == "drain":
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
    own, other = (answers.median(each, "drain", "rate") for each in (server, "mosquitto"))
    if not other or (own and own > other / 5):
        return None
    return (
        "its persistent sessions are durable queues on disk. mosquitto keeps all in memory here."
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
    password,
    memory,
    limit,
    full,
    wide,
    acknowledged,
    limited,
    unreconciled,
    slow_drain,
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

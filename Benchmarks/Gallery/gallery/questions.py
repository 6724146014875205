"""The questions that each server is asked; each answer is a dictionary of figures."""

import re

from . import drains
from .searches import search
from .servers import DOMAIN, PASSWORD


# Fan-outs and messages to a room, per second.
FAN_RATE = 5


class Sizes:
    """Loads of a whole run, and of a quick one."""

    def __init__(self, quick):
        self.storm_clients, self.storm_rate = (500, 500) if quick else (5000, 1000)
        # From where a search doubles, or halves for a slow server; a quick one ends at its bound.
        self.search = (
            ["--hold", "1s", "--first", "2000/s", "--max-rate", "8000/s"]
            if quick
            else ["--hold", "2s", "--first", "4000/s"]
        )
        # The longest of a search. Most are over by themselves; where verdicts differ it may take 60 steps.
        self.search_seconds = 20 if quick else 70
        # All repetitions of disturbed answers together, and how often one of them is repeated.
        self.repeat_seconds, self.repeats = (30, 1) if quick else (120, 2)
        self.pairs = 50
        self.subscribers, self.fan_seconds = (200, "3s") if quick else (1000, "10s")
        self.drain_rate, self.away = (1000, 3) if quick else (4000, 8)
        self.logins, self.login_rate = (100, 50) if quick else (500, 50)
        self.sessions = 50 if quick else 100
        self.occupants, self.muc_seconds = (50, "3s") if quick else (200, "10s")
        self.users = max(self.logins, self.sessions, self.occupants)


def summary(record, **figures):
    return {"verdict": record.verdict, "reasons": record.reasons, "stolen": record.stolen, **figures}


def connects(record):
    total = record.metric("connect_duration", phase="total")
    found = record.json["findings"]
    failures = found["clients_planned"] - found["clients_up"]
    cpu = record.metric("server_cpu_time").get("value")
    # What clients cost that never came up cannot be told apart.
    memory = record.metric("server_memory_per_connection").get("value")
    return summary(
        record,
        clients=found["clients_planned"],
        failures=failures,
        errors=[f"{error['kind']}: {error['count']}" for error in record.json["errors"]],
        p50=total.get("p50"),
        p99=total.get("p99"),
        cpu_per_connect=cpu / found["clients_up"] if cpu and not failures else None,
        memory=None if failures else memory,
    )


def mqtt(server, *words):
    return [
        words[0],
        "-h",
        "127.0.0.1",
        "-p",
        server.port,
        "-V",
        4,
        *server.login,
        "--watch-pid",
        server.pid,
        *words[1:],
    ]


def storm(clamor, server, sizes):
    words = mqtt(
        server,
        "conn",
        "-c",
        sizes.storm_clients,
        "-R",
        f"{sizes.storm_rate}/s",
        "--connect-timeout",
        "30s",
        "--duration",
        "2s",
    )
    return connects(clamor.record("storm", server.port, *words))


def capacity(qos):
    def ask(clamor, server, sizes):
        load = mqtt(server, "pubsub", "-c", sizes.pairs, "-q", qos, "-s", 64)
        return search(clamor, server, f"qos{qos}", sizes, load)

    return ask


def fan_out(clamor, server, sizes):
    words = mqtt(
        server,
        "pubsub",
        "-c",
        1,
        "--topology",
        "fan-out",
        "--subscribers",
        sizes.subscribers,
        "-q",
        1,
        "-s",
        64,
        "-R",
        "500/s",
        "--rate",
        f"{FAN_RATE}/s",
        "--duration",
        sizes.fan_seconds,
    )
    return deliveries(clamor.record("fan-out", server.port, *words))


def deliveries(record):
    delivery = record.metric("delivery_duration")
    cpu = record.metric("server_cpu_time")
    seconds = sum(stage["duration_seconds"] for stage in record.json["stages"] if stage["measured"])
    return summary(
        record,
        p50=delivery.get("p50"),
        p99=delivery.get("p99"),
        expected=record.total("delivery_expected"),
        lost=record.total("delivery_lost"),
        duplicated=record.total("delivery_duplicated"),
        cpu_per_message=cpu["rate"] * seconds / delivery["count"] if delivery.get("count") and "rate" in cpu else None,
    )


def drain(clamor, server, sizes):
    file = clamor.folder / "session-drain.yaml"
    file.write_text(drains.scenario(clamor.scenario("session-drain")))
    words = [
        "run",
        file,
        "--set",
        f"TARGET={server.url}",
        "--set",
        f"RATE={sizes.drain_rate}/s",
        "--set",
        "STEADY=2s",
        "--set",
        f"AWAY={sizes.away}s",
        "--set",
        "P99=10s",
        "--watch-pid",
        server.pid,
    ]
    record = clamor.record("drain", server.port, *words)
    names = [stage["name"] for stage in record.json["stages"]]
    lengths = {stage["name"]: stage["duration_seconds"] for stage in record.json["stages"]}
    received = [(lengths[name], record.total("received", stage=name)) for name in names if name.startswith("back-")]
    backlog = record.metric("delivery_duration", stage="away").get("count", 0)
    figures = deliveries(record)
    return figures | {
        "backlog": backlog,
        "seconds": drains.seconds(backlog, received, figures["duplicated"]),
        "watched": sum(length for length, _ in received),
    }


def xmpp(server, *words):
    return [
        "xmpp",
        words[0],
        "-h",
        f"127.0.0.1:{server.port}",
        "--jid",
        f"user%i@{DOMAIN}",
        "-P",
        PASSWORD,
        "--tls",
        "off",
        "--watch-pid",
        server.pid,
        *words[1:],
    ]


def login(clamor, server, sizes):
    words = xmpp(
        server,
        "login",
        "-c",
        sizes.logins,
        "-R",
        f"{sizes.login_rate}/s",
        "--connect-timeout",
        "30s",
        "--duration",
        "2s",
    )
    return connects(clamor.record("login", server.port, *words))


def message(clamor, server, sizes):
    return search(clamor, server, "message", sizes, xmpp(server, "message", "-c", sizes.sessions, "-s", 64))


def muc(clamor, server, sizes):
    words = xmpp(
        server,
        "muc",
        "--rooms",
        1,
        "--room-size",
        sizes.occupants,
        "-s",
        64,
        "-R",
        "50/s",
        "--connect-timeout",
        "60s",
        "--rate",
        f"{FAN_RATE}/s",
        "--duration",
        sizes.muc_seconds,
    )
    record = clamor.record("muc", server.port, *words)
    last = record.metric("muc_fanout_duration", receiver="last")
    first = record.metric("muc_fanout_duration", receiver="first")
    return deliveries(record) | {
        "first_p50": first.get("p50"),
        "last_p50": last.get("p50"),
        "join_p99": record.metric("muc_join_duration").get("p99"),
    }


MQTT_QUESTIONS = {
    "storm": storm,
    "qos0": capacity(0),
    "qos1": capacity(1),
    "qos2": capacity(2),
    "fan-out": fan_out,
    "drain": drain,
}
XMPP_QUESTIONS = {"login": login, "message": message, "muc": muc}


def is_asked(question, kind):
    """Whether the server knows the QoS level of a question about one."""
    level = re.fullmatch(r"qos(\d)", question)
    return level is None or int(level[1]) in kind.qos

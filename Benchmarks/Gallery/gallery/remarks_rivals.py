"""Explanations of surprising figures; each is printed only where its condition holds."""

from .document import duration, percent
from .limits import is_stolen
from .outputs import stall_truth


def has(tool):
    return lambda answers: tool in answers.results["tools"]


def is_dearer(contest, part, key, tool, other="Clamor", factor=1.0):
    """Whether the tool's figure is above the other's times the factor."""

    def holds(answers):
        one, two = (answers.median(each, contest, part, key) for each in (tool, other))
        return one is not None and two is not None and one > two * factor

    return holds


def wrong_count(tool, part, key="says"):
    def holds(answers):
        return any(
            each[key] is not None and each[key] != each["heard"] for each in answers.figures(tool, "counts", part)
        )

    return holds


def prints_none(tool):
    def holds(answers):
        return any(each["says"] is None for qos in range(3) for each in answers.figures(tool, "counts", f"qos{qos}"))

    return holds


def missed(answers, tool, qos):
    """Whether the subscriber got fewer messages than the tool was to publish."""
    wanted = answers.results["sizes"]["counted"][qos]
    return any(each["heard"] < wanted for each in answers.figures(tool, "counts", f"qos{qos}"))


def heard_less(tool, *levels):
    return lambda answers: any(missed(answers, tool, qos) for qos in levels)


def reports_less(tool, kind, share):
    """Whether the mean that it reports for the stall is below this share of the true one."""

    def holds(answers):
        sizes = answers.results["sizes"]
        mean = answers.median(tool, "stall", "", kind, "mean")
        return mean is not None and mean < share * stall_truth(sizes["stall"], sizes["stall_seconds"])["mean"]

    return holds


def uncounted(answers):
    """Tools at QoS 2 of which no subscriber is known to have got all messages."""
    found = []
    for tool in answers.tools("messages", "qos2"):
        # The window changes nothing about which messages a tool completes.
        own = tool.split(",")[0]
        if not answers.figures(own, "counts", "qos2") or missed(answers, own, 2):
            found.append(tool)
    return found


def large_tables(answers):
    """The large tables of emqtt_bench's emulator. At rest each of these options adds 189 to 192 MiB."""
    base = answers.median("emqtt_bench", "connects", "", "base")
    options = f"{answers.emulator('emqtt_bench')} "
    tables = {"processes (`+P`)": "+P 16000000 ", "ports (`ERL_MAX_PORTS`)": "ERL_MAX_PORTS=16000000 "}
    found = [name for name, option in tables.items() if option in options]
    return found if base is not None and base > 200 * 2**20 * len(found) else []


def of_tables(answers):
    names = large_tables(answers)
    size = "The table takes" if len(names) == 1 else "Each of these tables takes"
    return (
        f"emqtt_bench's emulator has room for 16,000,000 {' and as many '.join(names)}. {size} some 190 MiB of the"
        " base, whatever the number of clients."
    )


def emqtt_bench(answers):
    """With the version that ran, where it is known."""
    version = answers.results["versions"].get("emqtt_bench", "")
    return f"emqtt_bench {version}" if version[:1].isdigit() else "emqtt_bench"


def highest_second(answers):
    return duration(answers.median("emqtt_bench", "stall", "", "delivery", "highest_second"))


# Contest, condition, text; a text may be a function of the answers.
REMARKS = [
    (
        "messages",
        is_dearer("messages", "qos0", "cpu", "Clamor", "libmosquitto"),
        "libmosquitto needs less than Clamor at QoS 0. It is a library in C: it has no schedule, no histogram and no"
        " ledger, and its payload is the same for each message.",
    ),
    (
        "messages",
        is_dearer("messages", "qos1", "cpu", "Clamor, window 1", "Clamor"),
        "With one message in flight a client wakes for each acknowledgement and writes each message by itself. With 16"
        " one wake-up and one system call serve several messages.",
    ),
    (
        "messages",
        lambda answers: (
            is_dearer("messages", "qos0", "cpu", "Clamor", "libmosquitto", factor=1.5)(answers)
            and is_dearer("messages", "qos1", "cpu", "libmosquitto", "Clamor", factor=0.8)(answers)
        ),
        "libmosquitto loses this lead at QoS 1: it reads an acknowledgement in three system calls, and writes each"
        " message in one of its own.",
    ),
    (
        "messages",
        is_dearer("messages", "qos2", "cpu", "emqtt_bench", factor=3),
        "emqtt_bench runs a process for each client, and at QoS 2 four packets of a message pass through its mailbox.",
    ),
    (
        "messages",
        uncounted,
        lambda answers: (
            f"{'; '.join(uncounted(answers))}: CPU at QoS 2 is divided by the messages asked for, as mosquitto's count"
            " leaves out QoS 2. Not all of them may have been completed, so the figure is a lower bound."
        ),
    ),
    (
        "messages",
        has("tsung"),
        "tsung has no row at QoS 2. It supports QoS 0 and 1, as its maintainers say (processone/tsung, issue 236).",
    ),
    (
        "connects",
        is_dearer("connects", "", "cpu", "Clamor", "libmosquitto"),
        "libmosquitto is called by a plain loop in C. Clamor starts each connect at its due time, has an event loop and"
        " a pipeline for it, and records the durations of its phases.",
    ),
    (
        "connects",
        is_dearer("connects", "", "memory", "Clamor", "libmosquitto"),
        "The memory of libmosquitto is that of its client alone. Clamor keeps counters, windows and a place in its"
        " schedule for each client.",
    ),
    ("connects", large_tables, of_tables),
    (
        "counts",
        wrong_count("emqtt_bench", "qos0"),
        lambda answers: (
            f"{emqtt_bench(answers)} counts each message at QoS 0 twice: as it is handed over and as it is published."
            " It prints its counts once a second, and not at its end."
        ),
    ),
    (
        "counts",
        prints_none("emqtt_bench"),
        "emqtt_bench prints its counts once a second, and ended before the first of these lines.",
    ),
    (
        "counts",
        lambda answers: wrong_count("emqtt_bench", "qos1")(answers) or wrong_count("emqtt_bench", "qos2")(answers),
        "emqtt_bench prints its counts once a second. What it sent after the last of these lines is missing.",
    ),
    (
        "counts",
        heard_less("emqtt_bench", 0, 1),
        "emqtt_bench ends when its counter reaches the limit. A client that has not written its last message yet never"
        " sends it.",
    ),
    (
        "counts",
        heard_less("emqtt_bench", 2),
        "emqtt_bench stops at its limit without completing open handshakes. The broker delivers a message at QoS 2 only"
        " after PUBREL, so the subscriber misses the last ones.",
    ),
    (
        "delay",
        has("emqtt_bench"),
        "emqtt_bench reports an average of each second in whole milliseconds, and no percentile. The mean here is"
        " weighted by the messages of each second.",
    ),
    (
        "delay",
        has("tsung"),
        "tsung 1.7 measures a publish up to its acknowledgement. It has no time stamp in the message, and so no"
        " delivery latency; 1.8 has one on request.",
    ),
    ("delay", has("libmosquitto"), "libmosquitto is a library and reports no latency."),
    (
        "stall",
        reports_less("tsung", "acknowledgement", 0.5),
        "tsung's clients wait for the answer before they think and send again. In a stall each client has one message"
        " that waits; all others are sent later and look fast.",
    ),
    (
        "stall",
        reports_less("emqtt_bench", "delivery", 0.5),
        lambda answers: (
            "emqtt_bench writes the time stamp when it sends, and its clients wait for the acknowledgement of the"
            f" last message first. Its highest average of a second was {highest_second(answers)}."
        ),
    ),
    (
        "stall",
        has("Clamor"),
        "Clamor counts from when a message was due, whether its client could send it then or not.",
    ),
]


def disturbed(answers, contest):
    """Those of a tool whose CPU other machines took each time."""
    for tool in answers.results["tools"]:
        mine = [each for each in answers.results["answers"] if (each["tool"], each["contest"]) == (tool, contest)]
        shares = [each["figures"]["stolen"] for each in mine if is_stolen(each["figures"])]
        if shares:
            yield (
                f"{tool}: other machines took up to {percent(max(shares))} of the host's CPU in {len(shares)} of"
                f" {len(mine)} runs, repetitions included. Its figures say less here."
            )


def remarks(answers, contest):
    found = [text for of, holds, text in REMARKS if of == contest and holds(answers)]
    return [*(text(answers) if callable(text) else text for text in found), *disturbed(answers, contest)]

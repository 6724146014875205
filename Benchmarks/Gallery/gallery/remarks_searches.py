"""Explanations of searches, from the same figures as their table."""

from .document import digits, percent, whole
from .limits import FULL, Limit, disturbance, is_stolen, limit

SEARCHES = ("qos0", "qos1", "qos2", "message")
ONE_THREAD = {
    "mosquitto": "mosquitto has one thread.",
    "embedded": "The embedded broker has one thread for all clients.",
    "prosody": "prosody has one thread.",
}


def known(figures):
    """What a search without an end says about the server."""
    held, high = figures["load"], figures["high"]
    if held is None:
        return f"No load is known to hold; {whole(high)}/s broke" if high else "No load is known to hold"
    return f"The server held {whole(held)}/s" + (f", and {whole(high)}/s broke" if high else "")


def met(answers, server, question):
    """The limit of the table, explained from the same figures."""
    if question not in SEARCHES:
        return None
    return " ".join(explained(answers, server, each) for each in answers.figures(server, question))


def explained(answers, server, figures):
    cores = answers.results["cores"]
    found = limit(figures, cores)
    if found == Limit.UNCLEAR:
        when = "in the steps that decided, repetitions included" if is_stolen(figures) else "at that load"
        return f"{disturbance(figures)} {when}. {known(figures)}. On a quiet host it may hold more."
    if found == Limit.GENERATOR:
        reason = f" ({figures['reason'].rstrip('.')})" if figures.get("reason") else ""
        end = "its own limit is lower than that" if figures["high"] else "its own limit is not known"
        return f"the generator was the limit{reason}. {known(figures)}; {end}."
    if found == Limit.TIME:
        seconds = answers.results["sizes"]["search_seconds"]
        return f"the search was ended after {seconds} s. {known(figures)}. A longer one narrows that."
    if found == Limit.OFFERED:
        return f"all loads held, up to the highest that was offered, {whole(figures['load'])}/s."
    if figures["kind"] == "nothing-holds":
        reasons = [step["reason"] for step in figures["steps"] if step["verdict"] == "broken"]
        return f"no load held: {next(iter(reasons), None) or 'the objectives broke at once'}."
    both = figures["server_cores"] + figures["generator_cores"]
    if found == Limit.HOST:
        return (
            f"server and clients used {digits(both)} of {cores} cores at that load. On a machine of its own the server"
            " carries more."
        )
    if (figures.get("server_thread") or 0) > FULL:
        thread = percent(figures["server_thread"])
        return f"its busiest thread used {thread} of a core at that load. {ONE_THREAD.get(server, '')}".rstrip()
    return (
        f"server and clients used {digits(both)} of {cores} cores at that load. p99 broke before the CPU was full:"
        " pauses of the server lasted too long."
    )


def wide(answers, server, question):
    for figures in answers.figures(server, question) if question in SEARCHES else ():
        low, high = figures["low"], figures["high"]
        # Between the edges of an ended search nothing may have been offered.
        if figures["kind"] == "found" and low and high and high > 1.3 * low:
            return f"loads from {whole(low)} to {whole(high)}/s held in one step and broke in another."
    return None

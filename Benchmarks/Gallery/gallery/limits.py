"""Which limit a search met, and what is known of its load; from its kept figures alone."""

import enum

from .document import digits, percent

# Of the CPU, in the steps that decided, or in a run. More makes an answer one about the host's neighbours.
STOLEN = 0.1
# Cores; a quiet host needs less for itself.
DISTURBANCE = 0.3
# Of a core, or of all cores.
FULL = 0.8


class Limit(enum.Enum):
    SERVER = "the server was the limit"
    HOST = "the host was the limit"
    GENERATOR = "generator-limited"
    UNCLEAR = "unclear"
    OFFERED = "the search ended first"
    TIME = "broken off"


def edges(answer, steps):
    """The largest load that held, and the ends of the interval; None where nothing is known.

    The `high` of an answer is a load that broke, but of "generator-limited" the one that could not be offered.
    """
    if answer["kind"] in ("found", "at-least", "nothing-holds"):
        return {key: answer.get(key) for key in ("load", "low", "high")}
    held = [step["load"] for step in steps if step["verdict"] == "held"]
    broken = [step["load"] for step in steps if step["verdict"] == "broken"]
    low = max((load for load in held if not broken or load < min(broken)), default=None)
    high = min((load for load in broken if load > max(held, default=0)), default=None)
    return {"load": low, "low": low, "high": high}


def deciding(kind, load, high, steps):
    """The steps that decided: for each edge the one with the least stolen CPU, whose verdict is the best there."""
    groups = [
        [step for step in steps if (step["load"], step["verdict"]) == edge]
        for edge in ((load, "held"), (high, "broken"))
    ]
    if kind == "generator-limited":
        without = [step for step in steps if step["verdict"] in ("generator-limited", "disturbed")]
        groups.append([step for step in without if step["load"] == without[-1]["load"]])
    return [min(group, key=lambda step: step["stolen"] or 0) for group in groups if group]


def is_stolen(figures):
    return (figures.get("stolen") or 0) > STOLEN


def is_quieter(figures, other):
    """Whether less of the host's CPU was stolen."""
    return (figures.get("stolen") or 0) < (other.get("stolen") or 0)


def disturbance(figures):
    """What makes the limit of a search unclear; None if nothing does."""
    if is_stolen(figures):
        return f"other machines took {percent(figures['stolen'])} of the host's CPU"
    if (figures.get("others") or 0) > DISTURBANCE:
        return f"other work used {digits(figures['others'])} cores"
    if figures["kind"] == "found" and figures.get("server_cores") is None:
        return "the server's CPU is not known"
    return None


def limit(figures, cores):
    """The server only where nothing else was in its way."""
    kind = figures["kind"]
    if kind == "at-least":
        return Limit.OFFERED
    if disturbance(figures):
        return Limit.UNCLEAR
    if kind != "found":
        return {"generator-limited": Limit.GENERATOR, "interrupted": Limit.TIME, "nothing-holds": Limit.SERVER}[kind]
    if (figures.get("server_thread") or 0) > FULL:
        return Limit.SERVER
    # Where the CPU was not full, pauses of the server broke the objective.
    used = figures["server_cores"] + figures["generator_cores"]
    return Limit.HOST if used > FULL * cores else Limit.SERVER

"""The drain of persistent sessions: its scenario, and the time and rate that it shows."""

import math

# From the return of the subscribers on: the count of each of these stages says when the backlog was gone.
FINE, COARSE = 40, 5


def scenario(text):
    """`clamor init session-drain` for MQTT 3.1.1, its last stage in parts."""
    connect = "protocol: 5, clean: false, session_expiry: 10m"
    last = [line for line in text.splitlines() if "name: drain-off" in line]
    if text.count(connect) != 1 or len(last) != 1:
        raise SystemExit("clamor init session-drain: not the scenario that Benchmarks/Gallery knows")
    stages = [
        f"  - {{ name: back-{number}, for: {length}, load: 1% }}"
        for length, numbers in (("50ms", range(FINE)), ("1s", range(FINE, FINE + COARSE)))
        for number in numbers
    ]
    return text.replace(connect, "protocol: 4, clean: false").replace(last[0], "\n".join(stages))


def seconds(backlog, received, duplicated=0):
    """Between which seconds so many messages had come, from counts of the stages after the return.

    Those that came twice are in these counts, and may have come before the last one of the backlog. None if the
    backlog never came.
    """
    early, late = stage(backlog, received), stage(backlog + duplicated, received)
    return [early[0], late[1]] if early and late else None


def stage(count, received):
    """From when to when the stage was in which so many messages were complete."""
    passed = 0.0
    for length, each in received:
        before, passed = passed, passed + length
        count -= each
        if count <= 0:
            return before, passed
    return None


def bound(rounds):
    """What all rounds show of the rate: ("at least" or "below", messages per second); None without a backlog."""
    if not rounds or not all(each["backlog"] for each in rounds):
        return None
    late = [each for each in rounds if not each["seconds"]]
    if late:
        return "below", two_digits(max(each["backlog"] / each["watched"] for each in late), math.ceil)
    return "at least", two_digits(min(each["backlog"] / each["seconds"][1] for each in rounds), math.floor)


def two_digits(value, rounding):
    """Rounded up or down: a bound stays one."""
    unit = 10 ** (math.floor(math.log10(value)) - 1)
    # Sums of 0.05 are not exact.
    return rounding(round(value / unit, 6)) * unit

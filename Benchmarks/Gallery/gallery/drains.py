"""The drain of persistent sessions: its scenario, and the time that it took."""

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


def seconds(backlog, received):
    """Seconds until so many messages had come, from counts of the stages after the return; None if they never did."""
    passed = 0.0
    for length, count in received:
        passed += length
        backlog -= count
        if backlog <= 0:
            return passed
    return None

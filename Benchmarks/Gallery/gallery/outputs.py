"""Readers of the output of other tools."""

import re
import statistics


# Of the latencies that a tool prints, in seconds; others are finer than any error here.
RESOLUTION = {"emqtt_bench": 1e-3}


def emqtt_counts(text):
    """The last total of each counter that emqtt_bench printed: {'pub': 19822, 'pub_succ': 19822, ...}."""
    return {name: int(total) for name, total in re.findall(r"\d+[smhd] (\w+) total=(\d+)", text)}


def emqtt_latency(text):
    """The average of `publish_latency` in ms over the messages received, and the highest average of a second.

    emqtt_bench prints an average of each second, in whole milliseconds, beside the total received so far.
    """
    averages = {second: int(value) for second, value in re.findall(r"(\S+) publish_latency avg=(\d+)ms", text)}
    totals = [(second, int(total)) for second, total in re.findall(r"(\S+) recv total=(\d+)", text)]
    weights, before = {}, 0
    for second, total in totals:
        weights[second] = total - before
        before = total
    count = sum(weights.get(second, 0) for second in averages)
    if not count:
        return {}
    mean = sum(value * weights.get(second, 0) for second, value in averages.items()) / count
    return {"mean": mean / 1e3, "highest_second": max(averages.values()) / 1e3, "received": before}


def tsung_totals(text):
    """The last total of each counter in tsung.log."""
    return {name: int(total) for name, total in re.findall(r"^stats: (\w+) \d+ (\d+)$", text, re.MULTILINE)}


def tsung_sample(text, name):
    """Count, mean and max in seconds of a sample over all dumps of tsung.log, where it has ms.

    Each dump has the count and the mean of its own interval, and the max of all so far.
    """
    number = r"([\d.eE+-]+)"
    lines = re.findall(rf"^stats: {name} (\d+) {number} {number} {number}", text, re.MULTILINE)
    dumps = [(int(count), float(mean), float(most)) for count, mean, _, most in lines]
    count = sum(each for each, _, _ in dumps)
    if not count:
        return {}
    return {
        "count": count,
        "mean": sum(each * mean for each, mean, _ in dumps) / count / 1e3,
        "max": max(most for _, _, most in dumps) / 1e3,
    }


def delay_error(tool, true, plain, held):
    """What the rounds report of a known delay: its median error, and by how much the figure without it varies.

    In seconds. The rounds pair, since both are measured in turn. None where there is nothing to tell.
    """
    added = [two - one for one, two in zip(plain, held, strict=True) if one is not None and two is not None]
    if not added:
        return None
    known = [each for each in plain if each is not None]
    noise = max(known) - min(known) if len(known) > 1 else None
    return statistics.median(added) - true, noise, RESOLUTION.get(tool, 0)


def stall_truth(stall, duration):
    """Mean, p99 and max of response times at a steady rate, with one stall of the server and no other delay.

    A message that becomes due in the stall waits for its end.
    """
    return {
        "mean": stall * stall / 2 / duration,
        "p99": max(stall - 0.01 * duration, 0),
        "max": stall,
    }

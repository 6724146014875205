"""Searches of the largest load that a server holds."""

import json

from . import limits, records

OBJECTIVES = ["--slo", "delivery_duration p99 < 50ms", "--slo", "delivery_lost == 0"]


def search(clamor, server, question, sizes, load):
    """The answer of `clamor capacity`, its steps, and figures of the largest load that held."""
    out = clamor.search(
        question, server.port, "capacity", *OBJECTIVES, *sizes.search, *load, seconds=sizes.search_seconds
    )
    whole = json.loads((out / "capacity.json").read_text())
    answer = whole["answer"]
    steps = [
        {
            **{key: step.get(key) for key in ("load", "verdict", "reason", "directory")},
            "stolen": records.Record(out / step["directory"]).stolen,
        }
        for step in whole["steps"]
    ]
    edges = limits.edges(answer, steps)
    decided = limits.deciding(answer["kind"], edges["load"], edges["high"], steps)
    held = next((step for step in decided if step["verdict"] == "held"), None)
    return {
        "kind": answer["kind"],
        "reason": answer.get("reason"),
        **edges,
        "steps": [{key: value for key, value in step.items() if key != "directory"} for step in steps],
        "stolen": max((step["stolen"] for step in decided if step["stolen"] is not None), default=None),
        **(of_step(records.Record(out / held["directory"])) if held else {}),
    }


def of_step(step):
    received = step.metric("delivery_duration").get("count")
    cpu = step.metric("server_cpu_time")
    seconds = sum(stage["duration_seconds"] for stage in step.json["stages"] if stage["measured"])
    threads = [metric["mean"] for metric in step.json["metrics"] if metric["name"] == "server_thread_cpu"]
    server, idle = step.metric("server_cpu").get("mean"), step.metric("host_cpu_idle").get("mean")
    generator = step.json["generator"]["cpu_seconds"] / step.json["duration_seconds"]
    busy = step.json["host"]["cores"] * (1 - idle) if idle is not None else None
    return {
        # Cores that neither server nor load used.
        "others": max(busy - server - generator, 0) if busy is not None and server is not None else None,
        "p99": step.metric("delivery_duration").get("p99"),
        "server_cores": server,
        "server_thread": max(threads, default=None),
        "cpu_per_message": cpu["rate"] * seconds / received if received and "rate" in cpu else None,
        "generator_cores": generator,
    }

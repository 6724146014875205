"""Searches of the largest load that a server holds."""

import json

from . import records

OBJECTIVES = ["--slo", "delivery_duration p99 < 50ms", "--slo", "delivery_lost == 0"]


def edges_so_far(steps):
    """Of a search that was ended, from its (load, verdict): the load is the largest below all that ever broke."""
    held = [load for load, verdict in steps if verdict == "held"]
    broken = [load for load, verdict in steps if verdict == "broken"]
    low = max((load for load in held if not broken or load < min(broken)), default=None)
    high = min((load for load in broken if load > max(held, default=0)), default=None)
    return {"load": low, "low": low, "high": high}


def search(clamor, server, question, sizes, load):
    """The answer of `clamor capacity`, and figures of the largest step that held."""
    out = clamor.run(
        question, server.port, "capacity", *OBJECTIVES, *sizes.search, *load, seconds=sizes.search_seconds
    )
    whole = json.loads((out / "capacity.json").read_text())
    answer = whole["answer"]
    edges = {key: answer.get(key) for key in ("load", "low", "high")}
    if answer["kind"] == "interrupted":
        edges = edges_so_far([(step["load"], step["verdict"]) for step in whole["steps"]])
    held = [
        step
        for step in whole["steps"]
        if step["verdict"] == "held" and edges["load"] is not None and step["load"] <= edges["load"]
    ]
    figures = {
        "kind": answer["kind"],
        **edges,
        "reason": whole.get("reason") or answer.get("reason"),
        "steps": len(whole["steps"]),
        "held": len(held),
        "broken": next((step.get("reason") for step in whole["steps"] if step["verdict"] == "broken"), None),
    }
    if not held:
        return figures
    best = records.Record(out / max(held, key=lambda step: step["load"])["directory"])
    received = best.metric("delivery_duration").get("count")
    cpu, measured = best.metric("server_cpu_time"), best.json["stages"]
    seconds = sum(stage["duration_seconds"] for stage in measured if stage["measured"])
    threads = [metric["mean"] for metric in best.json["metrics"] if metric["name"] == "server_thread_cpu"]
    server, idle = best.metric("server_cpu").get("mean"), best.metric("host_cpu_idle").get("mean")
    generator = best.json["generator"]["cpu_seconds"] / best.json["duration_seconds"]
    busy = best.json["host"]["cores"] * (1 - idle) if idle is not None else None
    return {
        **figures,
        # Cores that neither server nor load used.
        "others": max(busy - server - generator, 0) if busy is not None and server is not None else None,
        "p50": best.metric("delivery_duration").get("p50"),
        "p99": best.metric("delivery_duration").get("p99"),
        "server_cores": server,
        "server_thread": max(threads, default=None),
        "cpu_per_message": cpu["rate"] * seconds / received if received and "rate" in cpu else None,
        "generator_cores": generator,
        "stolen": best.stolen,
    }

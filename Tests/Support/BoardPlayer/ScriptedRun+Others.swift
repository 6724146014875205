import Measurement
import Report

extension ScriptedRun {
    /// Chat between XMPP clients.
    package static var xmpp: ScriptedRun {
        var run = ScriptedRun(
            ["clamor", "xmpp", "message", "-c", "200", "--rate", "400/s"],
            plan: ["targets": .array([.string("chat.example")])],
            course: LiveCourse(
                stages: [LiveCourse.Stage("measure", seconds: 30)],
                stretches: [LiveCourse.Stretch(seconds: 30, from: 400, to: 400)],
                drainSeconds: 10
            ),
            clients: 200
        )
        for second in 0..<24 {
            let rate = second == 0 ? 0 : (400 * (1 + Scripted.noise(second) / 40)).rounded()
            let p99 = 0.0042 * (1.2 + Scripted.noise(second, 1) / 5)
            let message: Labels = ["stanza": "message"]
            var standing = LiveStanding()
            standing.expected = UInt64(max(0, second) * 400)
            standing.delivered = UInt64(max(0, second) * 400 - second % 3)
            run.add(
                second == 0 ? "connect" : "measure",
                [
                    Scripted.counter("stanza_offered", message, rate), Scripted.counter("stanza_sent", message, rate),
                    Scripted.counter("received", message.adding("delayed", "false"), rate),
                    Scripted.counter("received", ["stanza": "iq"], 7),
                    Scripted.gauge("clients", ["state": "connected"], 200), Scripted.counter("reconnects", [:], 0),
                ]
                    + [
                        Scripted.duration("delivery_duration", message, p99: p99, count: rate),
                        Scripted.duration("message_duration", p99: p99 * 0.97, count: rate),
                        Scripted.duration(
                            "iq_duration",
                            ["request": "ping"],
                            p99: p99 * 0.4,
                            count: second % 5 == 0 ? 9 : 0
                        ),
                    ].compactMap(\.self) + Scripted.generator(second, loops: [0.21], lag: 0.000_3, idle: 0.71),
                standing
            )
        }
        return run
    }

    /// A scenario with groups and stages.
    package static var scenario: ScriptedRun {
        let stages = [("settle", 5.0, 0.2), ("peak", 20, 1), ("storm", 15, 1)]
        var run = ScriptedRun(
            ["clamor", "run", "fleet.yaml"],
            plan: [
                "name": .string("fleet"),
                "groups": .object([
                    "devices": .object(["targets": .array([.string("a.example:1883"), .string("b.example:1883")])]),
                    "backend": .object(["targets": .array([.string("c.example:1883")])]),
                ]),
            ],
            course: LiveCourse(
                stages: stages.map { LiveCourse.Stage($0.0, seconds: $0.1, isMeasured: $0.0 != "settle") },
                stretches: stages.map { LiveCourse.Stretch(seconds: $0.1, from: 520 * $0.2, to: 520 * $0.2) },
                drainSeconds: 10
            ),
            clients: 114
        )
        for second in 0..<33 {
            let isLoad = second > 0
            let phase = !isLoad ? "connect" : second <= 5 ? "warmup" : "measure"
            let load = !isLoad ? 0 : second <= 5 ? 0.2 : 1.0
            let isStorm = second > 25
            let p99 = (isStorm ? 0.031 : 0.0018) * (1.2 + Scripted.noise(second) / 5)
            var metrics: [Metric?] = []
            for (stream, rate) in [("telemetry", 490.0), ("status", 10)] {
                let labels: Labels = ["group": "devices", "qos": "1", "stream": stream]
                let rate = (rate * load).rounded()
                metrics += [
                    Scripted.counter("publish_offered", labels, rate), Scripted.counter("publish_sent", labels, rate),
                    Scripted.counter("publish_acked", labels, rate),
                    Scripted.duration("publish_ack_duration", labels.adding("leg", "puback"), p99: p99, count: rate),
                    Scripted.duration(
                        "delivery_duration",
                        ["from": "devices", "group": "backend", "qos": "1", "stream": stream],
                        p99: p99 * 1.2,
                        count: rate
                    ),
                ]
            }
            let commands: Labels = ["group": "operators", "qos": "1"]
            let rate = (20 * load).rounded()
            metrics += [
                Scripted.counter("publish_offered", commands, rate), Scripted.counter("publish_sent", commands, rate),
                Scripted.counter("publish_acked", commands, rate),
                Scripted.counter("received", ["group": "backend", "qos": "1", "retained": "false"], 500 * load),
                Scripted.counter("received", ["group": "devices", "qos": "1", "retained": "false"], rate),
                Scripted.duration("publish_ack_duration", commands.adding("leg", "puback"), p99: p99 / 2, count: rate),
                Scripted.counter("disconnects", ["group": "devices", "reason": "storm"], isStorm ? 2 : 0),
                Scripted.counter("reconnects", ["group": "devices"], isStorm ? 2 : 0),
            ]
            for (group, count) in [("devices", isStorm ? 98.0 : 100), ("operators", 10), ("backend", 4)] {
                metrics.append(Scripted.gauge("clients", ["group": group, "state": "connected"], count))
            }
            run.add(
                phase,
                metrics.compactMap(\.self) + Scripted.generator(second, loops: [0.12], lag: 0.000_2, idle: 0.84)
            )
        }
        return run
    }

    /// Clients that keep their windows full, until a signal.
    package static var closed: ScriptedRun {
        var run = ScriptedRun(
            ["clamor", "pub", "-q", "1"],
            plan: ["targets": .array([.string("127.0.0.1:1883")])],
            course: LiveCourse(stages: [LiveCourse.Stage("measure", seconds: nil)], drainSeconds: 10),
            clients: 1
        )
        for second in 0..<100 {
            let rate = (41_000 * (1 + Scripted.noise(second) / 12)).rounded()
            run.add(
                "measure",
                [
                    Scripted.counter("publish_offered", ["qos": "1"], rate),
                    Scripted.counter("publish_sent", ["qos": "1"], rate),
                    Scripted.counter("publish_acked", ["qos": "1"], rate),
                    Scripted.gauge("clients", ["state": "connected"], 1),
                ]
                    + [
                        Scripted.duration(
                            "publish_ack_duration",
                            ["leg": "puback", "qos": "1"],
                            p99: 0.000_48 * (1.2 + Scripted.noise(second, 3) / 4),
                            count: rate
                        )
                    ].compactMap(\.self) + Scripted.generator(second, loops: [0.97], lag: 0.000_02, idle: 0.12)
            )
        }
        return run
    }

    /// Receivers without senders.
    package static var subscribers: ScriptedRun {
        var run = ScriptedRun(
            ["clamor", "sub", "-t", "plant/#"],
            plan: ["targets": .array([.string("broker.example:8883")])],
            course: LiveCourse(stages: [LiveCourse.Stage("measure", seconds: 60)], drainSeconds: 10),
            clients: 8
        )
        for second in 0..<12 {
            let rate = (900 * (1 + Scripted.noise(second) / 3)).rounded()
            run.add(
                "measure",
                [
                    Scripted.counter("received", ["qos": "0", "retained": "false"], rate),
                    Scripted.counter("received", ["qos": "0", "retained": "true"], second == 0 ? 64 : 0),
                    Scripted.counter("delivery_gaps", ["qos": "0"], second == 7 ? 3 : 0),
                    Scripted.counter("delivery_duplicated", ["qos": "0"], 0),
                    Scripted.gauge("clients", ["state": "connected"], 8),
                ] + Scripted.generator(second, loops: [0.02], lag: 0.000_1, idle: 0.97).filter { $0.duration == nil }
            )
        }
        return run
    }
}

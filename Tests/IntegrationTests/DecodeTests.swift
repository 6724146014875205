import Foundation
import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("Decoder throughput")
    struct DecodeTests {
        private func gauge(_ run: ClamorRun, _ name: String, _ form: String, _ path: String) -> GaugeReading? {
            run.record.metrics.first { $0.name == name && $0.labels.contains(["form": form, "path": path]) }?.gauge
        }

        private func counter(_ run: ClamorRun, _ name: String, _ form: String, _ path: String) -> Double? {
            run.record.metrics.first { $0.name == name && $0.labels.contains(["form": form, "path": path]) }?.counter?
                .value
        }

        @Test("every form on both paths has its figures, each relative to its own time")
        func figures() async throws {
            let run = try await ClamorRun.of("decode -V 4 -s 64 -t bench/topic/abcdefgh --duration 100ms --seed 1")
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(run.record.stages.count == 8)
            for stage in run.record.stages {
                let parts = stage.name.split(separator: "-").map(String.init)
                let labels: Labels = ["protocol": "mqtt", "path": parts[0], "form": parts[1]]
                func counter(_ name: String) throws -> CounterReading {
                    try #require(run.record.metrics.first { $0.name == name && $0.labels == labels }?.counter)
                }
                let packets = try counter("decode_packets")
                #expect(try counter("decode_bytes").value == 88 * packets.value)
                // The measured part is less than the whole, which includes warm-up and rest.
                let measured = try #require(packets.rate) * stage.durationSeconds
                #expect(measured > 0 && measured <= packets.value * 1.000_001, "\(stage.name)")
                #expect(try counter("decode_time").value > 0)
                let time = try #require(self.gauge(run, "decode_packet_time", parts[1], parts[0]))
                let (low, middle, high) = (try #require(time.min), try #require(time.median), try #require(time.max))
                #expect(low > 0 && low <= middle && middle <= high)
                let thousand = try #require(run.record.duration("decode_thousand_duration", labels))
                #expect(thousand.count >= 1)
            }
            func perRead(_ form: String) -> Double {
                let labels: Labels = ["form": form, "path": "memory"]
                return Double(run.record.count("decode_packets", labels)) / Double(run.record.count("reads", labels))
            }
            // 4,096 packets of 88 bytes in six reads of 64 KiB.
            #expect((682...683).contains(perRead("pipelined")))
            #expect((16...17).contains(perRead("segments")))
            #expect((0.04...0.05).contains(perRead("fragments")))
            #expect((0.99...1).contains(perRead("cuts")))
        }

        @Test("stanzas have the same figures in every form on both paths", arguments: ["-s 44", "--mix"])
        func stanzas(_ what: String) async throws {
            let run = try await ClamorRun.of("decode --protocol xmpp \(what) --duration 100ms --seed 1")
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(run.record.stages.count == 8)
            for stage in run.record.stages {
                let parts = stage.name.split(separator: "-").map(String.init)
                let labels: Labels = ["protocol": "xmpp", "path": parts[0], "form": parts[1]]
                let stanzas = run.record.count("decode_packets", labels)
                #expect(stanzas > 0)
                if what == "-s 44" { #expect(run.record.count("decode_bytes", labels) == 185 * stanzas) }
                #expect(try #require(self.gauge(run, "decode_packet_time", parts[1], parts[0])?.median) > 0)
                let thousand = try #require(run.record.duration("decode_thousand_duration", labels))
                #expect(thousand.count >= 1)
            }
            #expect(run.ending.output.contains("stanzas/s"))
            #expect(!run.ending.output.contains("ns/packet"))
            let plan = run.record.plan
            #expect(plan["protocol"] == "xmpp")
            #expect(plan["qos"] == nil && plan["topic"] == nil)
        }

        @Test("a read size cuts what the kernel joined")
        func readSize() async throws {
            let run = try await ClamorRun.of("decode --path socket --form pipelined --duration 50ms --read-size 10")
            #expect(run.status == 0)
            let bytes = run.record.count("decode_bytes")
            #expect(run.record.count("reads") * 10 >= bytes)
        }

        @Test("a threshold that is missed gives 99, one that is met 0")
        func thresholds() async throws {
            let line = "decode --form pipelined --path memory --duration 50ms"
            let lane = "{form=pipelined,path=memory}"
            let met = try await ClamorRun.of(
                line,
                "--threshold",
                "decode_packet_time\(lane) p50 < 1s",
                "--threshold",
                "decode_packets\(lane) rate > 1/s"
            )
            #expect(met.status == 0)
            #expect(met.record.thresholds.allSatisfy { $0.ok && $0.value != nil })
            let missed = try await ClamorRun.of(line, "--threshold", "decode_packet_time\(lane) p50 < 0.01ns")
            #expect(missed.status == 99)
            #expect(missed.ending.errorLines.count == 1)
        }

        @Test(
            "a threshold that adds up what cannot be added up, or asks for what is not there, is refused in one line",
            arguments: [
                ("decode_packet_time < 10ns", "that of 8 cannot be added up"),
                ("decode_packets{form=cuts} rate > 5/s", "that of 2 cannot be added up"),
                ("decode_packet_time{form=cuts,path=memory} p99 < 10ns", "only p50 is known"),
                ("reads p50 < 1s", "only durations have percentiles"),
                ("publish_sent > 5", "publish_sent is a metric of pub and pubsub, and not of decode"),
                ("decode_packets{form=pipelined,path=disk} > 5", "no such labels"),
            ]
        )
        func refused(_ sentence: String, _ words: String) async throws {
            let ending = try await ClamorBinary.run(["decode", "--threshold", sentence])
            #expect(ending.status == 64)
            #expect(ending.errorLines.count == 1)
            #expect(ending.errors.contains(words), "\(ending.errors)")
        }

        @Test("SIGINT ends it after the round: 105, and what was measured is there", arguments: ["memory", "socket"])
        func interrupted(_ path: String) async throws {
            let run = try await ClamorRun.of("decode --path \(path) --duration 1h") {
                try await $0.line { $0.contains(" \(path)-pipelined ") }
                $0.send(SIGINT)
            }
            #expect(run.status == 105)
            #expect(run.record.state == .aborted)
            #expect(run.record.reasonCodes.contains("interrupted"))
            #expect(run.record.count("decode_packets", ["form": "pipelined", "path": path]) > 0)
            #expect(self.gauge(run, "decode_packet_time", "pipelined", path)?.median != nil)
        }
    }
}

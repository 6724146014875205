import Foundation
import Measurement
import Report
import TestSupport
import Testing

extension Integration {
    @Suite(
        "Prometheus scrapes a mixed run",
        .enabled(if: PrometheusServer.isInstalled, "\(PrometheusServer.missing)"),
        .enabled(if: Ejabberd.isInstalled, "\(Ejabberd.missing)")
    )
    struct PrometheusRunTests {
        private static func scenario(_ server: Ejabberd, _ authority: String) -> String {
            """
            name: mixed
            seed: 11
            groups:
              sensors:
                target: mqtt://127.0.0.1:\(server.port)
                connect: { rate: 100/s, protocol: 5, keep_alive: 60s }
                username: \(server.username)
                password: \(Ejabberd.password)
                clients: 6
                subscribers: 3
                topology: fan-in
                publish: { topic: "fleet/%i/telemetry", qos: 1, size: 64, rate: 120/s }
              chat:
                target: xmpp://127.0.0.1:\(server.clientPort)
                ca_file: \(authority)
                clients: 4
                jid: user%i@\(server.domain)
                password: \(XMPPServer.password)
                message: { size: 80, rate: 50/s }
            """
        }

        @Test("its counts are those of run.json, and every query of the dashboard has data")
        func mixed() async throws {
            let certificates = try await Certificates.all()
            // The run watches the whole process.
            try await Ejabberd.withOwn(certificate: certificates.bundle(.xmpp), users: 4) { server in
                let folder = try ScratchFolder()
                let files = try ScratchFolder()
                let file = try files.write(Self.scenario(server, certificates.authority), to: "mixed.yaml")
                let line =
                    "run \(file) --duration 0 --prometheus 0 --prometheus-linger 60s --watch-pid \(server.program.pid) --threads 2"
                try await ClamorBinary.with(ClamorRun.arguments(line, in: folder)) { run in
                    try await self.check(run, folder)
                }
            }
        }

        private func check(_ run: RunningProgram, _ folder: ScratchFolder) async throws {
            let said = try await run.line { $0.hasPrefix("metrics at ") }
            let address = try #require(said.split(separator: "/").dropFirst().first)
            let configuration = GrafanaDashboard.scrapeConfiguration(address: String(address))
            try await PrometheusServer.with(configuration: configuration) { prometheus in
                // Windows of 5 s in the queries need some seconds of load.
                var scrapes = 0.0
                while scrapes < 9 {
                    scrapes = try await prometheus.query("count_over_time(clamor_run_finished[2m])").first?.value ?? 0
                }
                run.send(SIGINT)
                let ending = try await run.ended()
                #expect(ending.status == 0, "\(ending.errors)")
                let record = try ClamorRun(ending, folder).record
                // The time of the one scrape that had the final figures.
                let finished = "max_over_time(timestamp(clamor_run_finished == 1)[2m:1s])"
                // The subquery has no step between that scrape and the next full second.
                var found: Double?
                while found == nil { found = try await prometheus.query(finished).first?.value }
                let time = try #require(found)
                for name in ["publish_sent", "publish_acked", "received", "stanza_sent", "delivery_expected"] {
                    let known = record.metrics.filter { $0.name == name && $0.labels[Labels.stage] == nil }
                    for metric in known {
                        let labels = metric.labels.all.map { "\($0.key)=\"\($0.value)\"" }.joined(separator: ",")
                        let series = "clamor_\(name)_total{\(labels)}"
                        let count = try await prometheus.query(series, at: time).map(\.value)
                        #expect(count == [metric.counter?.value ?? -1], "\(series)")
                    }
                }
                for query in GrafanaDashboard.queries {
                    let atEnd = try await prometheus.query(query, at: time)
                    let before = try await prometheus.query(query, at: time - 4)
                    #expect(!atEnd.isEmpty || !before.isEmpty, "\(query)")
                }
            }
        }
    }
}

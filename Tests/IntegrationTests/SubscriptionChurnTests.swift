import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("Subscriptions that come and go")
    struct SubscriptionChurnTests {
        private static func turns(_ record: RunRecord) -> Int {
            ["done", "missed", "failed", "unfinished"].reduce(0) { $0 + record.count("subscription_churn_\($1)") }
        }

        private static func expectAnswers(_ record: RunRecord) {
            let done = record.count("subscription_churn_done")
            #expect(done > 0 && record.count("subscription_churn_failed") == 0)
            func count(_ leg: String) -> Int {
                Int(record.duration("subscription_churn_duration", ["leg": leg])?.count ?? 0)
            }
            #expect(count("unsuback") == done)
            #expect((done...done + record.count("subscription_churn_unfinished")).contains(count("suback")))
            #expect(record.duration("schedule_lag") != nil)
        }

        @Test(
            "at the rate that was asked for, beside a load that it does not touch",
            arguments: ["-V 3", "-V 4", "-V 5"]
        )
        func beside(_ version: String) async throws {
            let run = try await ClamorRun.of(
                "pubsub -h embedded -c 5 -q 0,1,2 --rate 300/s --duration 2s --subscription-churn 200/s \(version)"
            )
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(run.record.isSound, "\(run.record.reasonCodes)")
            #expect(Self.turns(run.record) == 400)
            Self.expectAnswers(run.record)
            #expect(run.record.count("publish_offered") == 600 && run.record.count("received") == 600)
            #expect(run.record.perQoS("delivery_duplicated") == [0, 0, 0])
            #expect(run.record.books.allSatisfy { $0.balances })
            #expect(run.record.duration("subscribe_duration")?.count == 5)
            #expect(run.record.errors.isEmpty)
        }

        @Test(
            "on mosquitto, with filters of its own; its clients are cut off meanwhile",
            .enabled(if: Mosquitto.isInstalled, Comment(rawValue: Mosquitto.missing))
        )
        func mosquitto() async throws {
            let run = try await Mosquitto.with { broker in
                try await ClamorRun.of(
                    """
                    conn -p \(broker.port) -c 20 --duration 4s --subscription-churn 250/s \
                    --subscription-churn-filter churn/%i/+/# --storm 50%@1s --seed 4
                    """
                )
            }
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(Self.turns(run.record) == 1_000)
            Self.expectAnswers(run.record)
            #expect(run.record.count("reconnects") == 10)
        }

        @Test("turns of clients that do not come up are missed, each of them")
        func missed() async throws {
            let run = try await ClamorRun.of(
                "conn -h embedded -c 4 --duration 1s --subscription-churn 100/s -C false -x 60 --storm 100%@0s -R 1"
            )
            #expect(Self.turns(run.record) == 100)
            #expect(run.record.count("subscription_churn_missed") > 0)
        }

        @Test("in segments the rates add up")
        func segments() async throws {
            let run = try await ClamorRun.of(
                "conn -h embedded -c 9 --duration 2s --subscription-churn 100/s --processes 2"
            )
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(Self.turns(run.record) == 200)
        }
    }
}

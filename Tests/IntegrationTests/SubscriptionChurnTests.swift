import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("Subscriptions that come and go")
    struct SubscriptionChurnTests {
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
            #expect(run.record.subscriptionTurns == 1_000)
            #expect(run.record.wrongSubscriptionTurns == [])
            #expect(run.record.count("reconnects") == 10)
        }
    }
}

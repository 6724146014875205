import EmbeddedBroker
import Measurement
import RunControl
import TestSupport
import Testing

@Suite("Subscriptions that come and go")
struct SubscriptionChurnTests {
    @Test(
        "at the rate that was asked for, beside a load that it does not touch",
        arguments: ["-V 3", "-V 4", "-V 5"]
    )
    func beside(_ version: String) throws {
        let run = try VirtualClamor.of(
            "pubsub -h embedded -c 5 -q 0,1,2 --rate 300/s --duration 2s --subscription-churn 200/s \(version)"
        )
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.record.isSound, "\(run.record.reasonCodes)")
        #expect(run.record.subscriptionTurns == 400)
        #expect(run.record.wrongSubscriptionTurns == [])
        #expect(run.record.count("publish_offered") == 600 && run.record.count("received") == 600)
        #expect(run.record.perQoS("delivery_duplicated") == [0, 0, 0])
        #expect(run.record.books.allSatisfy { $0.balances })
        #expect(run.record.duration("subscribe_duration")?.count == 5)
        #expect(run.record.errors.isEmpty)
    }

    @Test("turns of clients that do not come up are missed, each of them")
    func missed() throws {
        let run = try VirtualClamor.of(
            "conn -h embedded -c 4 --duration 1s --subscription-churn 100/s -C false -x 60 --storm 100%@0s -R 1"
        )
        #expect(run.record.subscriptionTurns == 100)
        #expect(run.record.count("subscription_churn_missed") > 0)
    }

    @Test("in segments the rates add up")
    func segments() throws {
        let run = try VirtualClamor.of(
            "conn -h embedded -c 9 --duration 2s --subscription-churn 100/s --processes 2"
        )
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.record.subscriptionTurns == 200)
    }
}

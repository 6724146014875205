import MQTT
import MQTTCodec
import Testing

@Suite("Declared and effective subscriptions")
struct SubscriptionReconcilerTests {
    typealias Round = SubscriptionReconciler.Round

    private let a0 = Subscription(filter: "a")
    private let a1 = Subscription(filter: "a", qos: .atLeastOnce)
    private let b2 = Subscription(filter: "b/#", qos: .exactlyOnce)

    /// Connected, with these in effect.
    private func subscribed(_ subscriptions: [Subscription]) -> SubscriptionReconciler {
        var reconciler = SubscriptionReconciler()
        _ = reconciler.declare(subscriptions)
        _ = reconciler.connected(sessionPresent: false, cleanStart: false)
        let granted = subscriptions.compactMap { ReasonCode(rawValue: $0.qos.rawValue) }
        _ = reconciler.ended(unsubscribed: nil, subscribed: granted)
        return reconciler
    }

    @Test("[SPEC A12] without a connection a declaration is only kept, and the next connection has it in one SUBSCRIBE")
    func offline() {
        var reconciler = SubscriptionReconciler()
        #expect(reconciler.declare([a0, b2]) == nil)
        #expect(reconciler.effective == [])
        #expect(reconciler.connected(sessionPresent: false, cleanStart: true) == Round(subscribe: [a0, b2]))
        #expect(reconciler.effective == [])
        #expect(reconciler.ended(unsubscribed: nil, subscribed: [.success, .grantedQoS1]) == nil)
        #expect(
            reconciler.effective == [
                MQTTSubscribeResult(filter: "a", reason: .success),
                MQTTSubscribeResult(filter: "b/#", reason: .grantedQoS1),
            ]
        )
    }

    @Test("[SPEC A12] the difference goes out in one UNSUBSCRIBE and one SUBSCRIBE")
    func difference() {
        var reconciler = self.subscribed([a0, b2, Subscription(filter: "d"), Subscription(filter: "c")])
        let e = Subscription(filter: "e")
        #expect(reconciler.declare([b2, e]) == Round(unsubscribe: ["a", "c", "d"], subscribe: [e]))
        #expect(
            reconciler.ended(unsubscribed: [.success, .success, .noSubscriptionExisted], subscribed: [.success]) == nil
        )
        #expect(reconciler.effective.map(\.filter) == ["b/#", "e"])
        #expect(reconciler.declare([b2, e]) == nil)
    }

    @Test("[SPEC A12] a changed QoS or option of a filter is subscribed to again")
    func changes() {
        var reconciler = self.subscribed([a0, b2])
        #expect(reconciler.declare([a1, b2]) == Round(subscribe: [a1]))
        #expect(reconciler.effective.first == MQTTSubscribeResult(filter: "a", reason: .success))
        #expect(reconciler.ended(unsubscribed: nil, subscribed: [.grantedQoS1]) == nil)
        #expect(reconciler.effective.first == MQTTSubscribeResult(filter: "a", reason: .grantedQoS1))
        var local = a1
        local.noLocal = true
        #expect(reconciler.declare([local, b2]) == Round(subscribe: [local]))
    }

    @Test("[SPEC A12] a session that the server has kept is left as it is, another one is subscribed to anew")
    func sessions() {
        var kept = self.subscribed([a0, b2])
        kept.disconnected()
        #expect(kept.connected(sessionPresent: true, cleanStart: false) == nil)
        #expect(kept.effective.count == 2)

        var lost = self.subscribed([a0, b2])
        lost.disconnected()
        #expect(lost.connected(sessionPresent: false, cleanStart: false) == Round(subscribe: [a0, b2]))
        #expect(lost.effective == [])

        var clean = self.subscribed([a0, b2])
        clean.disconnected()
        #expect(clean.connected(sessionPresent: true, cleanStart: true) == Round(subscribe: [a0, b2]))

        // The first connection may find the session of another process.
        var first = SubscriptionReconciler()
        _ = first.declare([a0])
        #expect(first.connected(sessionPresent: true, cleanStart: false) == Round(subscribe: [a0]))
    }

    @Test("[SPEC A12] what was declared between two connections is made up for in the kept session")
    func betweenConnections() {
        var reconciler = self.subscribed([a0, b2])
        reconciler.disconnected()
        #expect(reconciler.declare([a1]) == nil)
        #expect(
            reconciler.connected(sessionPresent: true, cleanStart: false)
                == Round(unsubscribe: ["b/#"], subscribe: [a1])
        )
    }

    @Test("[SPEC A12] a refused filter is in effect with its refusal, and is asked for again only when it may help")
    func refused() {
        var reconciler = SubscriptionReconciler()
        _ = reconciler.declare([a0, b2])
        _ = reconciler.connected(sessionPresent: false, cleanStart: false)
        #expect(reconciler.ended(unsubscribed: nil, subscribed: [.unspecifiedError, .grantedQoS2]) == nil)
        #expect(reconciler.effective.first == MQTTSubscribeResult(filter: "a", reason: .unspecifiedError))
        // Declared once more, and with the next connection.
        #expect(reconciler.declare([a0, b2]) == Round(subscribe: [a0]))
        #expect(reconciler.ended(unsubscribed: nil, subscribed: [.unspecifiedError]) == nil)
        reconciler.disconnected()
        #expect(reconciler.connected(sessionPresent: true, cleanStart: false) == Round(subscribe: [a0]))
        _ = reconciler.ended(unsubscribed: nil, subscribed: [.unspecifiedError])
        // A filter that the server never had needs no UNSUBSCRIBE.
        #expect(reconciler.declare([b2]) == nil)
        #expect(reconciler.effective.map(\.filter) == ["b/#"])
    }

    @Test("declarations during a round wait for its end and make one more")
    func oneRoundAtATime() {
        var reconciler = SubscriptionReconciler()
        _ = reconciler.connected(sessionPresent: false, cleanStart: true)
        #expect(reconciler.declare([a0]) == Round(subscribe: [a0]))
        #expect(reconciler.declare([b2]) == nil)
        #expect(reconciler.declare([a1]) == nil)
        #expect(reconciler.ended(unsubscribed: nil, subscribed: [.success]) == Round(subscribe: [a1]))
        #expect(reconciler.ended(unsubscribed: nil, subscribed: [.grantedQoS1]) == nil)
    }

    @Test("a request without an answer is repeated with the next connection, not on this one")
    func unanswered() {
        var reconciler = self.subscribed([a0])
        #expect(reconciler.declare([a1, b2]) == Round(subscribe: [a1, b2]))
        #expect(reconciler.ended(unsubscribed: nil, subscribed: nil) == nil)
        #expect(reconciler.effective == [MQTTSubscribeResult(filter: "a", reason: .success)])
        reconciler.disconnected()
        #expect(reconciler.connected(sessionPresent: true, cleanStart: false) == Round(subscribe: [a1, b2]))
        // The connection broke first this time: the server may have heard of b/#, so it is unsubscribed from.
        reconciler.disconnected()
        #expect(reconciler.ended(unsubscribed: nil, subscribed: [.grantedQoS1, .grantedQoS2]) == nil)
        _ = reconciler.declare([a1])
        #expect(
            reconciler.connected(sessionPresent: true, cleanStart: false)
                == Round(unsubscribe: ["b/#"], subscribe: [a1])
        )
    }

    @Test("a subscription that the server does not end stays in effect, and is asked about once a connection")
    func removalRefused() {
        var reconciler = self.subscribed([a0])
        #expect(reconciler.declare([]) == Round(unsubscribe: ["a"]))
        #expect(reconciler.ended(unsubscribed: [.notAuthorized], subscribed: nil) == nil)
        #expect(reconciler.effective.map(\.filter) == ["a"])
        reconciler.disconnected()
        #expect(reconciler.connected(sessionPresent: true, cleanStart: false) == Round(unsubscribe: ["a"]))
        #expect(reconciler.ended(unsubscribed: [.success], subscribed: nil) == nil)
        #expect(reconciler.effective == [])
    }

    @Test("of two with one filter the later one counts; filters are compared by their bytes ([MQTT-4.7.3-4])")
    func duplicates() {
        var reconciler = SubscriptionReconciler()
        _ = reconciler.connected(sessionPresent: false, cleanStart: true)
        let composed = Subscription(filter: "\u{E9}")
        let decomposed = Subscription(filter: "e\u{301}")
        let round = reconciler.declare([a0, composed, decomposed, a1])
        #expect(round?.subscribe.map { Array($0.filter.utf8) } == [[0x61], [0xC3, 0xA9], [0x65, 0xCC, 0x81]])
        #expect(round?.subscribe.first == a1)
    }
}

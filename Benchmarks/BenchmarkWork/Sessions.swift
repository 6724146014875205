import EmbeddedBroker
import MQTT
import MQTTCodec
import NIOCore

extension Work {
    static let sessions = [
        Work(.session, "10 in flight, QoS 1, publish and PUBACK", operations: 1_000) {
            let session = connectedSession()
            return {
                for _ in 0..<100 {
                    let first = publishTen(session.pointer, .atLeastOnce)
                    acknowledgeTen(session.pointer, .pubAck, from: first)
                }
            }
        },
        Work(.session, "10 in flight, QoS 2, publish, PUBREC and PUBCOMP", operations: 1_000) {
            let session = connectedSession()
            return {
                for _ in 0..<100 {
                    let first = publishTen(session.pointer, .exactlyOnce)
                    acknowledgeTen(session.pointer, .pubRec, from: first)
                    acknowledgeTen(session.pointer, .pubComp, from: first)
                }
            }
        },
        Work(.session, "QoS 2 received, PUBLISH and PUBREL", operations: 1_000) {
            let session = connectedSession()
            return {
                for id: UInt16 in 1...1_000 {
                    let action = session.pointer.pointee.receivedPublish(.exactlyOnce, id: id)
                    precondition(action == .deliverAndRecord)
                    precondition(session.pointer.pointee.receivedPubRel(id: id) == .success)
                }
            }
        },
        Work(.session, "subscription trie of 1,000 filters, match", operations: 100) {
            var trie = SubscriptionTrie()
            for number in 0..<1_000 {
                trie.insert(Int32(number), under: Array("fleet/\(number)/\(number % 2 == 0 ? "+" : "telemetry")".utf8))
            }
            trie.insert(1_000, under: Array("fleet/#".utf8))
            let topics = (0..<100).map { Array("fleet/\($0 * 10)/telemetry".utf8) }
            let tree = trie
            return {
                var found: Int32 = 0
                for topic in topics { tree.match(topic) { found &+= $0 &+ 1 } }
                precondition(found > 0)
                keep(found)
            }
        },
        Work(.session, "subscription trie of 1,000 filters, insert and remove", operations: 100) {
            let trie = Place(SubscriptionTrie())
            for number: Int32 in 0..<1_000 {
                trie.pointer.pointee.insert(number, under: Array("fleet/\(number)/+".utf8))
            }
            let filters = (2_000..<2_100).map { (Int32($0), Array("fleet/\($0)/telemetry".utf8)) }
            return {
                for (number, filter) in filters { trie.pointer.pointee.insert(number, under: filter) }
                for (number, filter) in filters { trie.pointer.pointee.remove(number, under: filter) }
            }
        },
    ]

    private static func connectedSession() -> Place<MQTTSession> {
        let session = Place(MQTTSession(SessionOptions(version: .v5, window: 16)))
        let now = NIODeadline.uptimeNanoseconds(1)
        _ = session.pointer.pointee.connect(clientID: "c", username: nil, password: nil, now: now)
        let action = session.pointer.pointee.received(ConnAck(), now: now)
        precondition(action == .connected(resumed: false))
        return session
    }

    /// Publishes ten; their identifiers follow one another.
    private static func publishTen(_ session: UnsafeMutablePointer<MQTTSession>, _ qos: QoS) -> UInt16 {
        let now = NIODeadline.uptimeNanoseconds(2)
        var first: UInt16 = 0
        for number: UInt64 in 0..<10 {
            let id = session.pointee.publish(InFlightPublish(due: now, written: now, sequence: number, qos: qos))
            if number == 0 { first = id }
        }
        return first
    }

    private static func acknowledgeTen(
        _ session: UnsafeMutablePointer<MQTTSession>,
        _ type: PacketType,
        from first: UInt16
    ) {
        var id = first
        for _ in 0..<10 {
            switch session.pointee.received(type, id: id, reason: 0) {
            case .completed, .release: break
            default: fatalError("a window in order is acknowledged in order")
            }
            id = id == .max ? 1 : id + 1
        }
    }
}

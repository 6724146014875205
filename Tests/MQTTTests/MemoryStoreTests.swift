import MQTT
import MQTTCodec
import NIOCore
import Synchronization
import Testing

@Suite("Messages in memory")
struct MemoryStoreTests {
    @Test("[MQTT-3.3.2-6] an expiry interval goes on in the store, and ends at 0")
    func expiry() async {
        let now = Mutex(NIODeadline.uptimeNanoseconds(5_000_000_000))
        let store = MQTTMemoryStore { now.withLock { $0 } }
        let lasting = MQTTMessage(topic: "t", qos: .atLeastOnce)
        var expiring = lasting
        expiring.properties = [.userProperty("a", "b"), .messageExpiryInterval(60)]
        await store.commit(
            [
                .insert(MQTTStoredMessage(sequence: 1, stage: .queued, message: expiring)),
                .insert(MQTTStoredMessage(sequence: 2, stage: .queued, message: lasting)),
            ],
            client: "c"
        )
        now.withLock { $0 = $0 + .milliseconds(59_999) }
        await store.commit([.advance(sequence: 1, to: .published(7))], client: "c")
        for (later, left) in [(TimeAmount.zero, 1), (.milliseconds(1), 0), (.hours(1), 0)] as [(TimeAmount, UInt32)] {
            now.withLock { $0 = $0 + later }
            expiring.properties = [.userProperty("a", "b"), .messageExpiryInterval(left)]
            #expect(
                await store.load(client: "c") == [
                    MQTTStoredMessage(sequence: 1, stage: .published(7), message: expiring),
                    MQTTStoredMessage(sequence: 2, stage: .queued, message: lasting),
                ]
            )
        }
    }
}

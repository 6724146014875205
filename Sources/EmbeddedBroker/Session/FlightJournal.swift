import DequeModule
import NIOCore

/// The messages in flight of a session, stored so that they can be sent again when the client is back.
///
/// Spec: MQTT 5.0 §4.4.
final class FlightJournal {
    struct Flight {
        /// Order of sending: of the PUBLISH, and after its answer of the PUBREL.
        var order: UInt64
        /// Order of the latest transmission, on any connection.
        var sent: UInt64
        var header: MessageQueue.Header
        /// Empty after the PUBLISH was answered.
        var bytes: ByteBuffer
        var isDelivered = true
        /// An earlier connection has handed it out, which cannot be undone.
        var wasHandedOut = false
    }

    private(set) var flights: [UInt16: Flight] = [:]
    /// Packet identifiers to be sent again, in order.
    private(set) var pending = Deque<UInt16>()
    private var order: UInt64 = 0
    /// The last message whose bytes have been handed out.
    private var handedOut: UInt64 = 0

    var byteCount: Int { self.flights.values.reduce(0) { $0 + $1.bytes.readableBytes } }
    func noteOutputTaken() { self.handedOut = self.order }

    func remember(_ id: UInt16, _ header: MessageQueue.Header, _ bytes: ByteBuffer) {
        self.order += 1
        self.flights[id] = Flight(order: self.order, sent: self.order, header: header, bytes: bytes)
    }

    /// PUBREC has answered the PUBLISH.
    func release(_ id: UInt16) {
        self.order += 1
        self.flights[id]?.order = self.order
        self.flights[id]?.sent = self.order
        self.flights[id]?.bytes = ByteBuffer()
        self.flights[id]?.isDelivered = true
    }

    func forget(_ id: UInt16) { self.flights[id] = nil }

    /// Sent again on this connection, which does not change its position among the others [MQTT-4.6.0-1].
    func sendAgain(_ id: UInt16) {
        self.order += 1
        self.flights[id]?.sent = self.order
        self.flights[id]?.isDelivered = true
    }

    func replace(_ id: UInt16, _ header: MessageQueue.Header, _ bytes: ByteBuffer) {
        self.flights[id]?.header = header
        self.flights[id]?.bytes = bytes
    }

    func popPending() -> UInt16? { self.pending.popFirst() }

    /// The connection has ended: reports the messages that it never handed out, and queues all for the next connection.
    ///
    /// - Parameter takenBack: called with each copy, and whether it was a retransmission of a copy handed out before.
    func park(takenBack: (Tally, Bool) -> Void) {
        // A PUBREL has no copy to take back.
        for (id, flight) in self.flights where flight.isDelivered && flight.bytes.readableBytes > 0 {
            if flight.sent <= self.handedOut {
                self.flights[id]?.wasHandedOut = true
            } else {
                takenBack(flight.header.tally, flight.wasHandedOut)
                if flight.wasHandedOut {
                    // Reported once, since the next connection may not get to send it.
                    self.flights[id]?.sent = 0
                } else {
                    self.flights[id]?.isDelivered = false
                }
            }
        }
        self.pending = Deque(self.flights.sorted { $0.value.order < $1.value.order }.map(\.key))
    }
}

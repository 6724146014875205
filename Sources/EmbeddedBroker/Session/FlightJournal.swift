import DequeModule
import NIOCore

/// The messages that a session has in flight, kept so that they can be sent again when the client is back.
///
/// Spec: MQTT 5.0 §4.4.
final class FlightJournal {
    struct Flight {
        /// Order of sending: of the PUBLISH, and once that is answered of the PUBREL.
        var order: UInt64
        /// The same of the latest sending, on whichever connection.
        var sent: UInt64
        var header: MessageQueue.Header
        /// Empty once PUBREL is due.
        var bytes: ByteBuffer
        /// It is in the books as delivered.
        var isDelivered = true
        /// An earlier connection has handed it out, which nothing takes back.
        var wasHandedOut = false
    }

    private(set) var flights: [UInt16: Flight] = [:]
    /// Packet identifiers that are to be sent again, in order.
    private(set) var pending = Deque<UInt16>()
    private var order: UInt64 = 0
    /// The last one whose bytes have been handed out.
    private var handedOut: UInt64 = 0

    var byteCount: Int { self.flights.values.reduce(0) { $0 + $1.bytes.readableBytes } }

    func noteOutputTaken() { self.handedOut = self.order }

    func remember(_ id: UInt16, _ header: MessageQueue.Header, _ bytes: ByteBuffer) {
        self.order += 1
        self.flights[id] = Flight(order: self.order, sent: self.order, header: header, bytes: bytes)
    }

    /// The PUBLISH was answered by PUBREC.
    func release(_ id: UInt16) {
        self.order += 1
        self.flights[id]?.order = self.order
        self.flights[id]?.sent = self.order
        self.flights[id]?.bytes = ByteBuffer()
        self.flights[id]?.isDelivered = true
    }

    func forget(_ id: UInt16) { self.flights[id] = nil }

    /// Sent anew on this connection, which does not change its place among the others [MQTT-4.6.0-1].
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

    /// The connection has ended: tells what it never handed out, and puts all in line for the next.
    ///
    /// - Parameter takenBack: called with each copy, and whether it was a repetition of one that was handed out before.
    func park(takenBack: (Tally, Bool) -> Void) {
        // A PUBREL has no copy to take back.
        for (id, flight) in self.flights where flight.isDelivered && flight.bytes.readableBytes > 0 {
            if flight.sent <= self.handedOut {
                self.flights[id]?.wasHandedOut = true
            } else {
                takenBack(flight.header.tally, flight.wasHandedOut)
                if flight.wasHandedOut {
                    // Told once, for the next connection may not come to send it.
                    self.flights[id]?.sent = 0
                } else {
                    self.flights[id]?.isDelivered = false
                }
            }
        }
        self.pending = Deque(self.flights.sorted { $0.value.order < $1.value.order }.map(\.key))
    }
}

/// One sender's messages that have not reached all their receivers.
///
/// A ring indexed by sequence number, 8 bytes per message. It is allocated with the first message and grows with the
/// number in flight, up to ``mostOpen``. The client's row owns it and has to ``close()`` it.
package struct FanOutFlights {
    package struct Arrival {
        /// The message was in flight until this arrival.
        package var isKnown = false
        package var isFirst = false
        package var isLast = false
    }

    private struct Flight {
        /// The lower half of the sequence number.
        var sequence: UInt32 = 0
        /// Receivers still missing.
        ///
        /// Negative while no receiver has the message; 0 in a free slot.
        var left: Int32 = 0
    }

    /// Beyond this number the oldest message is given up.
    package static let mostOpen = 4_096
    private static let fewest = 16

    package init() {}

    private var ring: UnsafeMutablePointer<Flight>?
    private var capacity: Int32 = 0
    /// Messages in flight.
    package private(set) var open: Int32 = 0

    package mutating func close() {
        self.ring?.deallocate()
        self.ring = nil
        self.capacity = 0
        self.open = 0
    }

    @inline(__always)
    private func place(_ sequence: UInt32) -> Int { Int(sequence) & (Int(self.capacity) - 1) }

    /// A message is sent to `receivers` receivers.
    ///
    /// - Returns: missing receivers of an older message that was given up for this one.
    package mutating func begin(_ sequence: UInt64, receivers: Int32) -> Int64 {
        guard receivers > 0 else { return 0 }
        let sequence = UInt32(truncatingIfNeeded: sequence)
        while self.capacity == 0 || self.isTaken(sequence) && self.capacity < Self.mostOpen { self.grow() }
        guard let ring = self.ring else { return 0 }
        let flight = ring + self.place(sequence)
        let givenUp = Int64(abs(flight.pointee.left))
        if givenUp == 0 { self.open += 1 }
        flight.pointee = Flight(sequence: sequence, left: -receivers)
        return givenUp
    }

    private func isTaken(_ sequence: UInt32) -> Bool { self.ring.map { $0[self.place(sequence)].left != 0 } ?? false }

    private mutating func grow() {
        let capacity = Int(self.capacity)
        let larger = max(Self.fewest, capacity * 2)
        let ring = UnsafeMutablePointer<Flight>.allocate(capacity: larger)
        ring.initialize(repeating: Flight(), count: larger)
        for index in 0..<capacity {
            guard let flight = self.ring?[index], flight.left != 0 else { continue }
            ring[Int(flight.sequence) & (larger - 1)] = flight
        }
        self.ring?.deallocate()
        self.ring = ring
        self.capacity = Int32(larger)
    }

    /// A message in flight.
    @inline(__always)
    private func flight(_ sequence: UInt64) -> UnsafeMutablePointer<Flight>? {
        let sequence = UInt32(truncatingIfNeeded: sequence)
        guard let flight = self.ring.map({ $0 + self.place(sequence) }), flight.pointee.left != 0,
            flight.pointee.sequence == sequence
        else { return nil }
        return flight
    }

    /// The message reached one of its receivers for the first time.
    package mutating func arrived(_ sequence: UInt64) -> Arrival {
        guard let flight = self.flight(sequence) else { return Arrival() }
        let isFirst = flight.pointee.left < 0
        flight.pointee.left = abs(flight.pointee.left) - 1
        let isLast = flight.pointee.left == 0
        if isLast { self.open -= 1 }
        return Arrival(isKnown: true, isFirst: isFirst, isLast: isLast)
    }

    /// Stops tracking the message.
    ///
    /// - Returns: receivers that it had not reached, and whether it had reached none.
    package mutating func drop(_ sequence: UInt64) -> (left: Int64, isUnheard: Bool) {
        guard let flight = self.flight(sequence) else { return (0, false) }
        let left = flight.pointee.left
        flight.pointee.left = 0
        self.open -= 1
        return (Int64(abs(left)), left < 0)
    }

    /// The message will not reach one of its receivers.
    ///
    /// - Returns: whether the message was tracked, and whether it has reached all other receivers.
    package mutating func miss(_ sequence: UInt64) -> (isKnown: Bool, isDone: Bool) {
        guard let flight = self.flight(sequence) else { return (false, false) }
        flight.pointee.left -= flight.pointee.left.signum()
        guard flight.pointee.left == 0 else { return (true, false) }
        self.open -= 1
        return (true, true)
    }

    /// Messages in flight, in no order.
    package func sequences(below next: UInt64) -> [UInt64] {
        guard let ring = self.ring, self.open > 0 else { return [] }
        return (0..<Int(self.capacity)).compactMap { index in
            guard ring[index].left != 0 else { return nil }
            return next &- UInt64(UInt32(truncatingIfNeeded: next) &- ring[index].sequence)
        }
    }
}

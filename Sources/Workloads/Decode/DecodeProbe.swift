import CPosix

/// Copies what one client at a time reads, with its cuts, so that a decoder of its own can be timed on it.
///
/// Decoding in place is too short to time: a clock read costs more than a packet. So each second another client's
/// reads are copied from a packet boundary on, up to 64 KiB, and walked again off the loop.
package struct DecodeProbe {
    package static let capacity = 65_536

    /// The client whose reads are copied; -1 while none is.
    package private(set) var place = -1
    private let clients: Int
    private let subject: DecodeSubject
    private var next = 0
    private var bytes: [UInt8] = []
    private var cuts: [Int32] = []

    package init(clients: Int, of subject: DecodeSubject) {
        self.clients = clients
        self.subject = subject
        self.place = clients > 0 ? 0 : -1
    }

    package mutating func copy(_ read: UnsafeRawBufferPointer, atBoundary: Bool) {
        if self.bytes.isEmpty, !atBoundary { return }
        guard self.bytes.count + read.count <= Self.capacity else {
            self.place = -1
            return
        }
        self.bytes.append(contentsOf: read)
        self.cuts.append(Int32(self.bytes.count))
    }

    /// The client has a new connection: what was copied of the old one may end inside a packet.
    package mutating func restart() {
        self.bytes = []
        self.cuts = []
    }

    /// Hands out what was copied and turns to another client.
    package mutating func take() -> DecodeSample? {
        defer {
            self.bytes = []
            self.cuts = []
            if self.clients > 0 {
                // A prime step: neighbours, which may be alike, are far apart in time.
                self.next = (self.next + 7_919) % self.clients
                self.place = self.next
            }
        }
        return self.bytes.isEmpty ? nil : DecodeSample(bytes: self.bytes, cuts: self.cuts, subject: self.subject)
    }
}

/// The reads of one client in one second, up to 64 KiB.
package struct DecodeSample: Sendable {
    let bytes: [UInt8]
    let cuts: [Int32]
    let subject: DecodeSubject

    /// Walks the bytes as they were cut, and says what it took: CPU time of this thread in nanoseconds.
    ///
    /// A slow client gives a few hundred bytes, less than a clock read costs: they are walked once to warm the caches,
    /// as the loop's are, and then as often as it takes to have walked ``DecodeProbe/capacity``. Between the two looks at
    /// the clock nothing is made.
    ///
    /// - Returns: nothing walked where the decoder refused it, for it did not see the connection from its beginning.
    package func measure() -> (nanoseconds: Int64, bytes: Int) {
        let machines = self.machines()
        guard !machines.isEmpty else { return (0, 0) }
        let times = self.times
        let start = clamor_thread_cpu_nanoseconds()
        if machines.count == 1 {
            for _ in 0..<times { _ = self.walk(machines[0]) }
        } else {
            for machine in machines { _ = self.walk(machine) }
        }
        // The time of one walk: how often it was repeated gives a small sample no more weight.
        return ((clamor_thread_cpu_nanoseconds() - start) / Int64(times), self.bytes.count)
    }

    /// Walks that are timed.
    private var times: Int { max(1, DecodeProbe.capacity / max(1, self.bytes.count)) }

    /// How many decoders the timed walks take: one where the bytes end with a packet, else one for each walk; none where
    /// the bytes are refused.
    package var decoders: Int { self.machines().count }

    private func machines() -> [DecodeMachine] {
        let machine = DecodeMachine(self.subject, .none)
        guard self.walk(machine) else { return [] }
        // A closing tag is the end of what a decoder takes.
        if machine.isBetweenPackets, self.walk(machine) { return [machine] }
        return (0..<self.times).map { _ in DecodeMachine(self.subject, .none) }
    }

    private func walk(_ machine: DecodeMachine) -> Bool {
        self.bytes.withUnsafeBytes { all in
            self.cuts.withUnsafeBufferPointer { cuts in
                (try? machine.walk(all, cuts: cuts, times: 1)) != nil
            }
        }
    }
}

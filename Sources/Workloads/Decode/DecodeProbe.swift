import CPosix

/// Copies the reads of one client at a time, with their boundaries, so that a separate decoder can be timed on them.
///
/// Decoding in place is too short to time: a clock read costs more than a packet. So each second the reads of another
/// client are copied from a packet boundary on, up to 64 KiB. They are decoded again off the loop.
package struct DecodeProbe {
    package static let capacity = 65_536

    /// The client whose reads are copied; -1 for none.
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

    /// The client has a new connection.
    ///
    /// The copied bytes of the old one may end inside a packet.
    package mutating func restart() {
        self.bytes = []
        self.cuts = []
    }

    /// Returns the copied reads and moves on to another client.
    package mutating func take() -> DecodeSample? {
        defer {
            self.bytes = []
            self.cuts = []
            if self.clients > 0 {
                // A prime step: neighbours, which may be alike, are sampled far apart in time.
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

    /// Decodes the reads with their original boundaries and measures the thread's CPU time in nanoseconds.
    ///
    /// A slow client has a few hundred bytes, which take less time than a clock read. They are decoded once to warm the
    /// caches, as the loop's are. Then they are decoded often enough to cover ``DecodeProbe/capacity``. Nothing is
    /// allocated between the two clock reads.
    ///
    /// - Returns: 0 bytes if the decoder refused them, because it did not see the start of the connection.
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
        // The time of one pass, so that repetition gives a small sample no more weight.
        return ((clamor_thread_cpu_nanoseconds() - start) / Int64(times), self.bytes.count)
    }

    /// Timed passes.
    private var times: Int { max(1, DecodeProbe.capacity / max(1, self.bytes.count)) }

    /// Decoders that the timed passes need: one if the bytes end with a packet, else one per pass; none if the bytes
    /// are refused.
    package var decoders: Int { self.machines().count }

    private func machines() -> [DecodeMachine] {
        let machine = DecodeMachine(self.subject, .none)
        guard self.walk(machine) else { return [] }
        // A decoder accepts nothing after a closing tag.
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

import XMPP

/// The contract of stream management (XEP-0198 §5): every counted stanza is acknowledged, sent again, or reported as
/// lost, exactly once.
///
/// It records the reports to the owner and the bytes that the server reads, independently of the client's own counts.
struct StanzaBook {
    /// The stanzas of the session, in the order in which they were written first.
    private var journal: [XMPPElement] = []
    /// Of the session, as reported to the owner.
    private var acknowledged = 0
    /// The number of the first stanza that this connection brings.
    private var base = 0
    /// Of this connection, those that are in ``journal``.
    private var booked = 0
    /// The count of a session that was cut and can be resumed.
    private var owed: Int?
    private var isReady = false
    /// An owner that leaves from within a call, or before it is ready, hears nothing more of the session.
    private var isBlind = false
    private(set) var problem: String?

    /// The stanzas of the session that the server has.
    var received: Int { self.isReady ? self.base + self.booked : self.journal.count }

    private mutating func complain(_ words: String) { if self.problem == nil { self.problem = words } }

    /// A connection begins; `sent` and `canResume` are the stream's of the one before.
    mutating func begins(sent: UInt32, canResume: Bool, wasEnabled: Bool) {
        // Ready, and never told: the owner left in the middle of being told.
        if !self.isReady, wasEnabled { self.isBlind = true }
        if self.isReady { self.owed = nil }
        if canResume { self.owed = Int(sent) }
        if self.owed == nil { self.acknowledged = 0 }
        self.isReady = false
        self.booked = 0
    }

    mutating func acknowledges(_ count: Int) { self.acknowledged += count }

    mutating func ready(_ readiness: XMPPReadiness) {
        defer { (self.isReady, self.isBlind) = (true, self.isBlind && readiness.resumed) }
        if readiness.resumed {
            if self.owed == nil, !self.isBlind { self.complain("resumed, and nothing was cut") }
            self.base = self.acknowledged
        } else {
            let owed = self.owed ?? 0
            if !self.isBlind, self.acknowledged + readiness.lost != owed {
                self.complain("\(self.acknowledged) acknowledged and \(readiness.lost) lost of \(owed)")
            }
            self.journal = []
            self.acknowledged = 0
            self.base = 0
        }
        self.owed = nil
    }

    /// - Parameters:
    ///   - written: stanzas that the server has read on this connection since `<enable/>` or `<resume/>`.
    ///   - stream: of the client.
    ///   - isOpen: whether its connection is.
    /// - Throws: what does not add up.
    mutating func check(_ written: [XMPPElement], _ stream: borrowing XMPPStream, isOpen: Bool) throws(Finding) {
        if let problem = self.problem { throw Finding(problem) }
        guard !self.isBlind else { return }
        let sent = Int(stream.stanzasSent)
        guard self.isReady else {
            // Its own end, or the server's word, has ended the session that could go on.
            if let owed = self.owed, owed > 0, owed == sent, !stream.canResume { self.isBlind = true }
            return
        }
        while self.booked < written.count {
            let number = self.base + self.booked
            if number < self.journal.count {
                try Finding.unless(self.journal[number] == written[self.booked], "stanza \(number) is another one now")
            } else {
                self.journal.append(written[self.booked])
            }
            self.booked += 1
        }
        guard isOpen, stream.state == .connected, sent > 0 else { return }
        try Finding.unless(self.base + self.booked == sent, "\(self.base) + \(self.booked) written, \(sent) counted")
        let open = stream.unacknowledged
        try Finding.unless(
            self.acknowledged + open == sent,
            "\(self.acknowledged) acknowledged, \(open) open, \(sent) counted"
        )
    }
}

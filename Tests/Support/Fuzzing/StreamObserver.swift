import NIOCore
import Transport
import XMPP

enum StreamEvent: String, CaseIterable {
    case ready
    case resumed
    case received
    case requested
    case answered
    case timedOut = "timed out"
    case requestLost = "request lost"
    case acknowledged
    case filtered
    case writable
    case secured
    case reacted

    static let indices = Dictionary(uniqueKeysWithValues: Self.allCases.enumerated().map { ($1, $0) })
    var index: Int { Self.indices[self] ?? 0 }
}

/// The owner: records reported events, and reacts from within a call if configured to.
final class StreamObserver: XMPPConnectionObserver {
    var timer = NIODeadline.distantFuture
    var tls: ((Result<Void, ConnectError.Reason>) -> Void)?
    var problem: String?
    var ends: [XMPPConnectionEnd] = []
    var events = [Int](repeating: 0, count: StreamEvent.allCases.count)
    /// How often each request by bytes has come back.
    var tokens: [UInt64: Int] = [:]
    var readies = 0
    var book = StanzaBook()
    /// Whether ends are put into words, which costs a tenth of a life.
    var describesEnds = true
    /// Whether the next request is answered.
    var takesRequests = false
    /// Runs once, at the next reported event.
    var reaction: (() -> Void)?
    private(set) var hasEnded = true
    /// So far no element of the read was cut, so the next one is complete in itself.
    private(set) var isAtBoundary = true
    private var isEnding = false
    private var isReady = false

    func begin() {
        self.hasEnded = false
        self.isEnding = false
        self.isReady = false
        self.timer = .distantFuture
        self.tls = nil
    }

    func complain(_ words: String) { if self.problem == nil { self.problem = words } }

    private func heard(_ event: StreamEvent) {
        self.events[event.index] += 1
        if self.hasEnded { self.complain("\(event) behind the end") }
    }

    private func react() {
        guard let reaction = self.reaction.take() else { return }
        self.events[StreamEvent.reacted.index] += 1
        reaction()
    }

    func needsTLS(
        _ client: Int,
        channel: any Channel,
        before wire: Wire,
        done: @escaping (Result<Void, ConnectError.Reason>) -> Void
    ) {
        if self.hasEnded || self.tls != nil { self.complain("TLS is asked for behind the end, or twice") }
        self.tls = done
    }

    func ready(_ client: Int, jid: JID, _ readiness: XMPPReadiness, now: NIODeadline) {
        self.heard(readiness.resumed ? .resumed : .ready)
        if self.isReady { self.complain("ready twice") }
        if readiness.lost < 0 || readiness.acknowledged < 0 { self.complain("\(readiness)") }
        self.isReady = true
        self.readies += 1
        self.book.ready(readiness)
        self.react()
    }

    func read(_ client: Int, _ bytes: UnsafeRawBufferPointer, atBoundary: Bool) {
        if self.hasEnded { self.complain("a read behind the end") }
        self.isAtBoundary = atBoundary
    }

    func readEnded(_ client: Int, now: NIODeadline) { if self.hasEnded { self.complain("a read behind the end") } }

    func received(_ client: Int, _ element: borrowing ElementView, now: NIODeadline) {
        self.heard(.received)
        self.react()
    }

    func requested(_ client: Int, _ request: borrowing ElementView, now: NIODeadline) -> Bool {
        self.heard(.requested)
        self.react()
        return false
    }

    func answered(_ client: Int, _ token: UInt64, _ answer: borrowing ElementView, now: NIODeadline) {
        self.heard(.answered)
        self.tokens[token, default: 0] += 1
        self.react()
    }

    func unanswered(_ client: Int, _ token: UInt64, _ error: XMPPRequestError, now: NIODeadline) {
        self.heard(error == .timedOut ? .timedOut : .requestLost)
        self.tokens[token, default: 0] += 1
        self.react()
    }

    func acknowledged(_ client: Int, count: Int, now: NIODeadline) {
        self.heard(.acknowledged)
        if count <= 0 { self.complain("acknowledged \(count)") }
        self.book.acknowledges(count)
        self.react()
    }

    func received(_ client: Int, filtered stanza: XMPPElement, now: NIODeadline) -> Bool {
        self.heard(.filtered)
        self.react()
        return false
    }

    func wrote(_ client: Int, bytes: Int) { if bytes <= 0 { self.complain("wrote \(bytes) bytes") } }

    func writable(_ client: Int, now: NIODeadline) { self.heard(.writable) }

    func ending(_ client: Int, unsent: Int) {
        if self.isEnding || self.hasEnded { self.complain("ends twice") }
        if unsent < 0 { self.complain("\(unsent) bytes unsent") }
        self.isEnding = true
    }

    func ended(_ client: Int, _ end: XMPPConnectionEnd, now: NIODeadline) {
        if self.hasEnded { self.complain("ends twice") }
        self.hasEnded = true
        self.ends.append(end)
        guard self.describesEnds else { return }
        let words = "\(end)".utf8.count
        if words > 4_096 { self.complain("an end of \(words) bytes") }
    }

    func wantsTimer(_ client: Int, at: NIODeadline) { self.timer = min(self.timer, at) }
}

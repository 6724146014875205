public import XMPPCodec

/// Tells others the time here, and asks for theirs.
///
/// Spec: XEP-0202.
public final class XMPPEntityTime: XMPPModule {
    /// The time of another entity.
    public struct Time: Hashable, Sendable {
        /// The moment of the answer, by the clock there.
        public let utc: XMPPTimestamp
        /// The zone there: minutes that its time is ahead of UTC.
        public let offset: Int

        init?(_ iq: XMPPElement) {
            guard let time = iq.child("time", XMPPNamespace.time),
                let utc = time.child("utc", XMPPNamespace.time).flatMap({ XMPPTimestamp($0.text) }),
                let zone = time.child("tzo", XMPPNamespace.time)?.text
            else { return nil }
            var reader = TimestampReader(zone)
            guard let offset = reader.offset(), reader.isAtEnd else { return nil }
            self.utc = utc
            self.offset = Int(offset)
        }
    }

    /// The way to the client.
    public let link = XMPPModuleLink()
    private let answers: Bool
    private let offset: Int
    private let clock: @Sendable () -> XMPPTimestamp

    /// - Parameters:
    ///   - answers: whether requests of others are answered; `false` refuses their requests.
    ///   - offset: the zone to tell, minutes ahead of UTC, -1439 to 1439; zero does not give away where this is.
    public convenience init(answers: Bool = true, offset: Int = 0) {
        self.init(answers: answers, offset: offset) { .now }
    }

    package init(answers: Bool, offset: Int, clock: @escaping @Sendable () -> XMPPTimestamp) {
        precondition(abs(offset) < 1_440, "a zone differs from UTC by less than a day")
        self.answers = answers
        self.offset = offset
        self.clock = clock
    }

    /// The time, if requests are answered.
    public var features: [String] { self.answers ? [XMPPNamespace.time] : [] }

    /// Makes the handler.
    public func makeHandler() -> any XMPPHandler {
        EntityTimeHandler(offset: self.answers ? self.offset : nil, clock: self.clock)
    }

    /// Asks an entity for its time.
    ///
    /// - Parameter jid: the address; `nil` asks the own server.
    /// - Returns: its answer, unverified.
    /// - Throws: as ``XMPPClient/request(_:)``, and ``XMPPClientError/invalid(_:)`` for an answer without a time.
    public func time(of jid: JID? = nil) async throws(XMPPClientError) -> Time {
        let question = XMPPElement("time", namespace: XMPPNamespace.time)
        let answer = try await self.link.request(.iq("get", to: jid, question))
        guard let time = Time(answer) else { throw .invalid("the answer has no time in it") }
        return time
    }
}

/// Answers requests for the time.
///
/// Spec: XEP-0202 §3.
package final class EntityTimeHandler: XMPPHandler {
    private let offset: Int?
    private let clock: () -> XMPPTimestamp

    /// - Parameters:
    ///   - offset: minutes ahead of UTC; `nil` refuses all requests.
    ///   - clock: the time now.
    package init(offset: Int? = 0, clock: @escaping () -> XMPPTimestamp = { .now }) {
        self.offset = offset
        self.clock = clock
    }

    package func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
        guard let offset = self.offset, stanza.name == "iq", stanza["type"] == "get",
            stanza.child("time", XMPPNamespace.time) != nil
        else { return false }
        var time = XMPPElement("time", namespace: XMPPNamespace.time)
        time.add(XMPPElement("tzo", namespace: XMPPNamespace.time, text: Self.zone(offset)))
        time.add(XMPPElement("utc", namespace: XMPPNamespace.time, text: self.clock().description))
        context.answer(stanza, with: time)
        return true
    }

    private static func zone(_ offset: Int) -> String {
        let minutes = Int64(abs(offset))
        return (offset < 0 ? "-" : "+") + XMPPTimestamp.pad(minutes / 60, 2) + ":"
            + XMPPTimestamp.pad(minutes % 60, 2)
    }
}

import LoopContext
import NIOCore
import NIOEmbedded
import Testing
import Transport
import XMPP

/// Whatever an owner or a module does from within a call that it gets, the connection goes on or ends once, and what it
/// writes is whole.
@Suite("Calls from within calls")
struct CallbackTests {
    /// Where the call is made from.
    enum Place: String, CaseIterable, Sendable {
        case phase, ready, read, received, requested, answered, answeredToken, unanswered, acknowledged, readEnded
        case wrote, ending, ended, moduleReady, filterSent, filterReceived, handle, moduleTimer, moduleEnded, expired
        case receipt

        var isOfModule: Bool {
            switch self {
            case .moduleReady, .filterSent, .filterReceived, .handle, .moduleTimer, .moduleEnded: true
            default: false
            }
        }
    }

    enum Call: String, CaseIterable, Sendable {
        case send, append, sendElement, request, requestBytes, acknowledge, finish, abort, inject, answer, flush
        /// The channel breaks, as when a write fails in the middle of a read.
        case failingWrite
    }

    private final class Caller: XMPPConnectionObserver, XMPPHandler {
        let place: Place
        let call: Call
        weak var connection: XMPPConnection?
        weak var channel: (any Channel)?
        var calls = 0
        var ends: [XMPPConnectionEnd] = []
        var answers: [Int: Int] = [:]
        var tokens: [UInt64: Int] = [:]
        var afterEnd: [String] = []
        var timer = NIODeadline.distantFuture
        var deadline = NIODeadline.distantFuture

        init(_ place: Place, _ call: Call) {
            self.place = place
            self.call = call
        }

        /// Once: what is sent from `wrote` is written too.
        private func reach(_ place: Place) {
            if !self.ends.isEmpty, place != .ended, place != .moduleEnded { self.afterEnd.append(place.rawValue) }
            self.act(place)
        }

        private func act(_ place: Place) {
            guard place == self.place, self.calls == 0, let connection = self.connection else { return }
            self.calls += 1
            self.perform(on: connection)
        }

        func ask(on connection: XMPPConnection, timeout: TimeAmount = .seconds(20), place: Place = .answered) {
            let number = self.answers.count
            // A request after the end is reported as not sent at once.
            let isLate = !self.ends.isEmpty
            self.answers[number] = 0
            let ping = XMPPElement("ping", namespace: XMPPNamespace.ping)
            let iq = XMPPElement(
                "iq",
                namespace: XMPPNamespace.client,
                attributes: ["type": "get"],
                children: [.element(ping)]
            )
            connection.request(iq, timeout: timeout) { result in
                self.answers[number, default: 0] += 1
                if isLate { self.act(place) } else { self.reach(result == .failure(.timedOut) ? .expired : place) }
            }
        }

        private func perform(on connection: XMPPConnection) {
            let message = XMPPElement("message", namespace: XMPPNamespace.client, attributes: ["id": "call"])
            switch self.call {
            case .send: connection.send { $0.writeString("<message id='call'/>") }
            case .append: connection.append { $0.writeString("<message id='call'/>") }
            case .sendElement: _ = try? connection.send(message)
            case .request: self.ask(on: connection)
            case .requestBytes:
                let isSent = connection.request(
                    100,
                    to: nil,
                    timeout: .seconds(20),
                    before: Array("<iq type='get' id='".utf8),
                    after: Array("'><a xmlns='b'/></iq>".utf8)
                )
                if isSent { self.tokens[100] = 0 }
            case .acknowledge: connection.requestAcknowledgement()
            case .finish: connection.finish()
            case .abort: connection.abort()
            case .inject: connection.inject(message)
            case .answer:
                let request = XMPPElement(
                    "iq",
                    namespace: XMPPNamespace.client,
                    attributes: ["type": "get", "id": "x"]
                )
                connection.answer(request)
            case .flush: connection.flush()
            case .failingWrite:
                self.channel?.pipeline.fireErrorCaught(IOError(errnoCode: 32, reason: "write"))
                self.channel?.close(promise: nil)
            }
        }

        func needsTLS(
            _ client: Int,
            channel: any Channel,
            before wire: Wire,
            done: @escaping (Result<Void, ConnectError.Reason>) -> Void
        ) {}

        func phase(_ client: Int, _ phase: XMPPPhase, took: TimeAmount, now: NIODeadline) { self.reach(.phase) }
        func ready(_ client: Int, jid: JID, _ readiness: XMPPReadiness, now: NIODeadline) { self.reach(.ready) }
        func read(_ client: Int, _ bytes: UnsafeRawBufferPointer, atBoundary: Bool) { self.reach(.read) }
        func readEnded(_ client: Int, now: NIODeadline) { self.reach(.readEnded) }
        func received(_ client: Int, _ element: borrowing ElementView, now: NIODeadline) { self.reach(.received) }

        func requested(_ client: Int, _ request: borrowing ElementView, now: NIODeadline) -> Bool {
            self.reach(.requested)
            return false
        }

        func answered(_ client: Int, _ token: UInt64, _ answer: borrowing ElementView, now: NIODeadline) {
            self.tokens[token, default: 0] += 1
            self.reach(.answeredToken)
        }

        func unanswered(_ client: Int, _ token: UInt64, _ error: XMPPRequestError, now: NIODeadline) {
            self.tokens[token, default: 0] += 1
            self.reach(.unanswered)
        }

        func acknowledged(_ client: Int, count: Int, now: NIODeadline) { self.reach(.acknowledged) }
        func wrote(_ client: Int, bytes: Int) { self.reach(.wrote) }
        func writable(_ client: Int, now: NIODeadline) {}
        func ending(_ client: Int, unsent: Int) { self.reach(.ending) }

        func ended(_ client: Int, _ end: XMPPConnectionEnd, now: NIODeadline) {
            self.ends.append(end)
            self.reach(.ended)
        }

        func wantsTimer(_ client: Int, at: NIODeadline) { self.timer = min(self.timer, at) }

        func received(_ client: Int, filtered stanza: XMPPElement, now: NIODeadline) -> Bool {
            self.reach(.received)
            return false
        }

        // As a module.

        func ready(_ session: XMPPSession, in context: XMPPModuleContext) {
            self.deadline = context.now + .seconds(3)
            self.reach(.moduleReady)
        }

        func filterSent(_ stanza: XMPPElement, in context: XMPPModuleContext) -> XMPPElement? {
            self.reach(.filterSent)
            return stanza
        }

        func filterReceived(_ stanza: XMPPElement, in context: XMPPModuleContext) -> XMPPElement? {
            self.reach(.filterReceived)
            return stanza
        }

        func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
            self.reach(.handle)
            return false
        }

        func timerFired(in context: XMPPModuleContext) {
            self.deadline = .distantFuture
            self.reach(.moduleTimer)
        }

        func ended(_ end: XMPPClientEnd) { self.reach(.moduleEnded) }

        func told(_ isSent: Bool) { if self.ends.isEmpty { self.reach(.receipt) } else { self.act(.receipt) } }
    }

    @Test("do no harm", arguments: Place.allCases, Call.allCases)
    func calls(_ place: Place, _ call: Call) throws {
        let caller = Caller(place, call)
        let options = ConnectionRig.options {
            $0.management = .acknowledge
            $0.keepAlive = .zero
        }
        let rig = try ConnectionRig(
            options,
            account: ConnectionRig.account,
            modules: place.isOfModule ? [caller] : [],
            observer: caller
        )
        caller.connection = rig.connection
        caller.channel = rig.channel
        rig.start()
        try rig.login(features: "<sm xmlns='urn:xmpp:sm:3'/>")
        try rig.receive("<enabled xmlns='urn:xmpp:sm:3'/>")
        self.use(rig.connection, caller)
        var written = try rig.sent()
        let answer = "<iq type='result' id='00000000000000002'/><iq type='result' id='00000000000000004'/>"
        try rig.receive(
            "<message id='m'/><iq type='get' id='q'><x xmlns='y'/></iq><a xmlns='urn:xmpp:sm:3' h='1'/>\(answer)"
        )
        try rig.receive("<presence/><message/>")
        // Requests run out, and the module's time comes.
        for second in 1...12 {
            rig.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
            if caller.ends.isEmpty { rig.connection.timerFired(now: rig.context.refresh()) }
            written += try rig.sent()
            if second == 11, caller.ends.isEmpty { rig.connection.finish() }
        }
        try rig.receive("</stream:stream>")
        rig.channel.close(promise: nil)
        written += try rig.sent()
        rig.channel.embeddedEventLoop.run()

        #expect(caller.calls == 1)
        #expect(caller.ends.count == 1)
        #expect(caller.afterEnd == [])
        #expect(caller.answers.values.allSatisfy { $0 == 1 }, "\(caller.answers)")
        #expect(caller.tokens.values.allSatisfy { $0 == 1 }, "\(caller.tokens)")
        try Self.expectWhole(written)
        #expect(rig.context.scratch.pointee.readableBytes == 0)
    }

    /// The owner's requests, chosen so that all callbacks happen.
    private func use(_ connection: XMPPConnection, _ caller: Caller) {
        connection.send { $0.writeString("<message/>") }
        caller.ask(on: connection)
        caller.ask(on: connection, timeout: .seconds(2))
        for (token, timeout) in [(1, 20), (2, 2)] as [(UInt64, Int64)] {
            let isSent = connection.request(
                token,
                to: nil,
                timeout: .seconds(timeout),
                before: Array("<iq type='get' id='".utf8),
                after: Array("'><ping xmlns='urn:xmpp:ping'/></iq>".utf8)
            )
            if isSent { caller.tokens[token, default: 0] += 0 }
        }
        let message = XMPPElement("message", namespace: XMPPNamespace.client)
        do { _ = try connection.offer(message) { caller.told($0) } } catch { Issue.record("\(error)") }
    }

    private struct Counter: XMPPReaderSink {
        mutating func opened(_ header: StreamHeader) -> ReadingGoesOn { .goOn }
        mutating func element(_ element: borrowing ElementView) -> ReadingGoesOn { .goOn }
        mutating func closed() -> ReadingGoesOn { .goOn }
    }

    /// Every stream of it is XML, and nothing is cut or behind the closing tag.
    private static func expectWhole(_ written: String) throws {
        for stream in written.split(separator: "<stream:stream") where stream != "<?xml version='1.0'?>" {
            var reader = XMPPReader()
            var sink = Counter()
            let bytes = Array("<stream:stream\(stream)".utf8)
            try bytes.withUnsafeBytes { _ = try reader.read($0, into: &sink) }
            let isWhole = reader.isBetweenElements
            #expect(isWhole, "\(stream.suffix(200))")
        }
    }
}

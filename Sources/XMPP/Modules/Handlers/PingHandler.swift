import LoopContext
package import NIOCore
package import XMPPCodec

/// Answers pings, measures their round trip, and finds out whether a silent server is still there.
///
/// Spec: XEP-0199.
package final class PingHandler: XMPPHandler {
    private let interval: TimeAmount
    private let timeout: TimeAmount
    private var next = NIODeadline.distantFuture
    private var isOut = false

    /// - Parameters:
    ///   - interval: silence after which the client pings its server; zero or less: never.
    ///   - timeout: the wait for the answer before the connection counts as lost.
    package init(interval: TimeAmount = .zero, timeout: TimeAmount = .seconds(10)) {
        self.interval = interval
        self.timeout = timeout
    }

    package var deadline: NIODeadline { self.next }

    package func ready(_ session: XMPPSession, in context: XMPPModuleContext) {
        self.isOut = false
        self.next = self.interval > .zero ? context.now + self.interval : .distantFuture
    }

    package func filterReceived(_ stanza: XMPPElement, in context: XMPPModuleContext) -> XMPPElement? {
        if self.interval > .zero { self.next = context.now + self.interval }
        return stanza
    }

    package func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
        guard stanza.name == "iq", stanza["type"] == "get", stanza.child("ping", XMPPNamespace.ping) != nil
        else { return false }
        context.answer(stanza)
        return true
    }

    package func timerFired(in context: XMPPModuleContext) {
        self.next = context.now + self.interval
        guard !self.isOut else { return }
        self.isOut = true
        Self.ping(nil, in: context, timeout: self.timeout) { [weak self, weak connection = context.connection] result in
            self?.isOut = false
            if case .failure(.timedOut) = result { connection?.close(.pingTimedOut) }
        }
    }

    package func ended(_ end: XMPPClientEnd) {
        self.next = .distantFuture
        self.isOut = false
    }

    /// Pings an entity, or the own server.
    ///
    /// `answer`: the time until the answer. An error reply counts too, also the one that pings are unknown (§4.1).
    package static func ping(
        _ to: JID?,
        in context: XMPPModuleContext,
        timeout: TimeAmount? = nil,
        _ answer: @escaping Answer<TimeAmount>
    ) {
        let loop = context.connection.loop
        let began = loop.refresh()
        let ping = XMPPElement.iq("get", to: to, XMPPElement("ping", namespace: XMPPNamespace.ping))
        context.connection.request(ping, timeout: timeout) { result in
            switch result {
            case .success: answer(.success(loop.now - began))
            case .failure(.refused(let error))
            where error.condition == .serviceUnavailable || error.condition == .featureNotImplemented:
                answer(.success(loop.now - began))
            case .failure(let error): answer(.failure(error))
            }
        }
    }
}

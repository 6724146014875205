import LoopContext
import NIOCore

// Stanzas to send, requests, and the callers that wait for them.
extension XMPPClientCore {
    func send(_ stanza: XMPPElement, _ waiter: XMPPClientWaiter<Void>) {
        guard let connection = self.connection, connection.takesStanzas else {
            waiter.complete(.failure(.notConnected))
            return
        }
        // Each waiting send has a task of its own, which limits their number.
        guard self.sends.isEmpty, connection.isWritable else { return self.sends.append((stanza, waiter)) }
        self.send(stanza, waiter, on: connection)
    }

    func send(_ stanza: XMPPElement, _ waiter: XMPPClientWaiter<Void>, on connection: XMPPConnection) {
        do throws(XMPPWriteError) {
            let isSent = try connection.send(stanza)
            waiter.complete(isSent ? .success(()) : .failure(.notConnected))
        } catch {
            waiter.complete(.failure(.invalid(error.description)))
        }
    }

    func withdraw(_ waiter: XMPPClientWaiter<Void>) { self.sends.removeAll { $0.waiter === waiter } }

    func failSends(_ error: XMPPClientError) {
        let sends = self.sends
        self.sends = []
        for (_, waiter) in sends { waiter.complete(.failure(error)) }
    }

    func request(_ iq: XMPPElement, _ waiter: XMPPClientWaiter<XMPPElement>) {
        guard iq.isRequest else {
            waiter.complete(.failure(.invalid("a request is an iq of type get or set in jabber:client")))
            return
        }
        guard let connection = self.connection else {
            waiter.complete(.failure(.notConnected))
            return
        }
        connection.request(iq, timeout: TimeAmount(self.configuration.requestTimeout)) {
            waiter.complete($0.mapError(Self.error))
        }
    }

    func ping(_ jid: JID?, _ waiter: XMPPClientWaiter<Duration>) {
        guard let connection = self.connection else {
            waiter.complete(.failure(.notConnected))
            return
        }
        let timeout = TimeAmount(self.configuration.requestTimeout)
        XMPPPing.ping(jid, on: connection, timeout: timeout) { result in
            waiter.complete(result.map { .nanoseconds($0.nanoseconds) }.mapError(Self.error))
        }
    }

    private static func error(_ error: XMPPRequestError) -> XMPPClientError {
        switch error {
        case .refused(let error): .refused(error)
        case .timedOut: .timedOut
        case .connectionLost: .ended(XMPPClientEnd(XMPPConnectionEnd.lost))
        case .notSent: .notConnected
        case .invalid(let words): .invalid(words)
        }
    }
}

import LoopContext
import NIOCore

// Stanzas to send, requests, and the callers that wait for them.
extension XMPPClientCore {
    struct WaitingSend {
        let stanza: XMPPElement
        let progress: XMPPSendProgress
        let waiter: XMPPClientWaiter<Void>
    }

    func send(_ stanza: XMPPElement, until progress: XMPPSendProgress, _ waiter: XMPPClientWaiter<Void>) {
        guard let connection = self.connection, connection.takesStanzas else { return waiter.fail(.notConnected) }
        let send = WaitingSend(stanza: stanza, progress: progress, waiter: waiter)
        // Each waiting send has a task of its own, which limits their number.
        guard self.sends.isEmpty, connection.isWritable else { return self.sends.append(send) }
        self.send(send, on: connection)
    }

    func send(_ send: WaitingSend, on connection: XMPPConnection) {
        let waiter = send.waiter
        do throws(XMPPWriteError) {
            switch send.progress {
            case .accepted: waiter.complete(Self.outcome(try connection.offer(send.stanza)))
            case .written:
                let outcome = try connection.offer(send.stanza) { isWritten in
                    waiter.complete(isWritten ? .success(()) : .failure(.ended(XMPPClientEnd(XMPPConnectionEnd.lost))))
                }
                if outcome != .sent { waiter.complete(Self.outcome(outcome)) }
            case .acknowledged:
                guard send.stanza.namespace == XMPPNamespace.client else {
                    return waiter.fail(.invalid("only stanzas are acknowledged (XEP-0198 §4)"))
                }
                guard connection.stream.pointee.facts.contains(.managed), connection.stream.pointee.management != nil
                else {
                    return waiter.fail(.invalid("the server acknowledges no stanzas: it has no stream management"))
                }
                let outcome = try connection.offer(send.stanza)
                guard outcome == .sent else {
                    waiter.complete(Self.outcome(outcome))
                    return
                }
                let number = self.acknowledged + UInt64(connection.stream.pointee.unacknowledged)
                // A filter may have made something else of it.
                guard number > self.acknowledged else {
                    waiter.complete(.success(()))
                    return
                }
                self.unacknowledged.append((number, waiter))
                connection.requestAcknowledgement()
            }
        } catch {
            waiter.fail(.invalid(error.description))
        }
    }

    private static func outcome(_ outcome: XMPPConnection.Offer) -> Result<Void, XMPPClientError> {
        switch outcome {
        case .sent: .success(())
        case .dropped: .failure(.dropped)
        case .refused: .failure(.notConnected)
        }
    }

    func withdraw(_ waiter: XMPPClientWaiter<Void>) {
        self.sends.removeAll { $0.waiter === waiter }
        self.unacknowledged.removeAll { $0.waiter === waiter }
    }

    func failSends(_ error: XMPPClientError) {
        let sends = self.sends
        self.sends = []
        for send in sends { send.waiter.fail(error) }
    }

    // MARK: Acknowledgements

    func acknowledged(_ count: Int) {
        self.acknowledged += UInt64(count)
        while let first = self.unacknowledged.first, first.number <= self.acknowledged {
            self.unacknowledged.removeFirst()
            first.waiter.complete(.success(()))
        }
    }

    static var lost: XMPPClientError { .ended(XMPPClientEnd(XMPPConnectionEnd.lost)) }

    /// The session before could not be resumed: the fate of its stanzas is unknown.
    func beginSession() {
        self.failUnacknowledged(Self.lost)
        self.acknowledged = 0
    }

    func failUnacknowledged(_ error: XMPPClientError) {
        let waiting = self.unacknowledged
        self.unacknowledged = []
        for (_, waiter) in waiting { waiter.fail(error) }
    }

    func request(_ iq: XMPPElement, _ waiter: XMPPClientWaiter<XMPPElement>) {
        guard iq.isRequest else {
            return waiter.fail(.invalid("a request is an iq of type get or set in jabber:client"))
        }
        guard let connection = self.connection else { return waiter.fail(.notConnected) }
        connection.request(iq) {
            waiter.complete($0.mapError { XMPPClientError($0) })
        }
    }

    func ping(_ jid: JID?, _ waiter: XMPPClientWaiter<Duration>) {
        guard let connection = self.connection else { return waiter.fail(.notConnected) }
        PingHandler.ping(jid, in: XMPPModuleContext(connection)) { result in
            waiter.complete(result.map { .nanoseconds($0.nanoseconds) }.mapError { XMPPClientError($0) })
        }
    }
}

extension XMPPClientError {
    init(_ error: XMPPRequestError) {
        self =
            switch error {
            case .refused(let error): .refused(error)
            case .timedOut: .timedOut
            case .connectionLost: .ended(XMPPClientEnd(XMPPConnectionEnd.lost))
            case .notSent: .notConnected
            case .invalid(let words): .invalid(words)
            case .dropped: .dropped
            }
    }
}

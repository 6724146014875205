import MQTTCodec
import NIOCore
import SASL

// Enhanced authentication (§4.12).
extension MQTTConnection {
    /// Proves once more who this client is, on the connection as it stands (§4.12.1).
    ///
    /// - Returns: whether AUTH was sent: not before CONNACK, not without an authenticator, not while one is under way.
    @discardableResult
    package func reauthenticate() -> Bool {
        guard self.end == nil, self.session.pointee.state == .connected else { return false }
        do throws(SASLError) {
            guard let auth = try self.extras?.authenticator?.reauthenticate() else { return false }
            self.send(auth)
            return true
        } catch {
            self.fail(error)
            return false
        }
    }

    func received(_ auth: Auth, now: NIODeadline) {
        guard let extras = self.extras, !extras.isVerbatim else {
            if self.extras == nil { self.refuse(.protocolError, "AUTH was not asked for ([MQTT-4.12.0-6])") }
            return
        }
        let isConnecting = self.session.pointee.state == .connecting
        switch extras.authenticator?.received(auth, isConnecting: isConnecting) {
        case nil: self.refuse(.protocolError, "AUTH was not asked for ([MQTT-4.12.0-6])")
        case .send(let answer): self.send(answer)
        case .done: self.observer.reauthenticated(self.client, now: now)
        case .violation(let words): self.sayGoodbye(.protocolError, .violation(.protocolError, words))
        case .failed(let error): self.fail(error)
        }
    }

    /// Whether the CONNACK that accepts proves what the method wants it to; if not, the connection is at its end.
    func isAuthentic(_ connack: ConnAck) -> Bool {
        if self.extras?.isVerbatim ?? false { return true }
        switch self.extras?.authenticator?.received(connack) {
        case nil:
            guard connack.properties.authenticationMethod != nil else { return true }
            self.refuse(.protocolError, "an authentication method was not asked for ([MQTT-4.12.0-6])")
        case .done, .send: return true
        case .violation(let words): self.refuse(.protocolError, words)
        case .failed(let error): self.fail(error)
        }
        return false
    }

    private func send(_ auth: Auth) {
        if self.write(.auth(auth)) { return self.flushUnlessReading() }
        self.sayGoodbye(
            .implementationSpecificError,
            .notAuthenticated(.malformed("AUTH is larger than the server allows"))
        )
    }

    /// What the server sent is no proof.
    ///
    /// No reason code that a client may send says so: unspecified it is (§3.14.2.1).
    private func fail(_ error: SASLError) {
        if case .malformed = error { return self.sayGoodbye(.protocolError, .notAuthenticated(error)) }
        self.sayGoodbye(.unspecifiedError, .notAuthenticated(error))
    }

    /// Says the reason, which in an authentication is allowed before CONNACK too ([MQTT-3.1.2-30]), and closes.
    private func sayGoodbye(_ reason: ReasonCode, _ end: ConnectionEnd) {
        guard self.end == nil else { return }
        self.write(.disconnect(Disconnect(reason: reason)))
        self.flush()
        self.close(end)
    }
}

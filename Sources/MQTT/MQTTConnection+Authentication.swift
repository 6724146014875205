import MQTTCodec
import NIOCore
import SASL

// Enhanced authentication (§4.12).
extension MQTTConnection {
    /// Re-authenticates this client on the current connection (§4.12.1).
    ///
    /// - Returns: whether AUTH was sent: not before CONNACK, without an authenticator, or during another
    ///   authentication.
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

    /// Whether an accepting CONNACK contains the proof that the method requires; if not, the connection is closed.
    func verifyOrClose(_ connack: ConnAck) -> Bool {
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

    /// The server's data does not prove its identity.
    ///
    /// Clients have no specific reason code for this, so DISCONNECT carries "unspecified error" (§3.14.2.1).
    private func fail(_ error: SASLError) {
        if case .malformed = error { return self.sayGoodbye(.protocolError, .notAuthenticated(error)) }
        self.sayGoodbye(.unspecifiedError, .notAuthenticated(error))
    }

    /// Sends the reason, which an authentication allows before CONNACK too ([MQTT-3.1.2-30]), and closes.
    private func sayGoodbye(_ reason: ReasonCode, _ end: ConnectionEnd) {
        guard self.end == nil else { return }
        self.write(.disconnect(Disconnect(reason: reason)))
        self.flush()
        self.close(end)
    }
}

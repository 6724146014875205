extension MQTTClient {
    /// Proves once more who this client is, as in its CONNECT, on the connection as it stands (AUTH 0x19, §4.12.1).
    ///
    /// For servers whose sessions are good for a time. Messages go on meanwhile. There is one exchange at a time: a call
    /// during another one waits for the end of that.
    ///
    /// A server that refuses ends the connection, as does one that proves nothing itself. One that does not answer in
    /// time (``MQTTTimeouts/acknowledgement``) fails the call alone; its answer may still come, and then counts for the
    /// next call. A cancelled task stops waiting, not the exchange.
    ///
    /// - Throws: ``MQTTClientError/invalid(_:)`` without ``MQTTClientConfiguration/authentication``, before MQTT 5 or with a
    ///   raw CONNECT, `notConnected`, `notAuthenticated`, `timedOut(.authentication)`, `connectionLost` (`disconnected`
    ///   with the server's reason, 0x87 as a rule, if it refused), `disconnected`, `cancelled`.
    public func reauthenticate() async throws(MQTTClientError) {
        try await self.perform { (core: ClientCore, waiter: Waiter<Void>) in core.reauthenticate(waiter) }
    }
}

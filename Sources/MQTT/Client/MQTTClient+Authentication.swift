extension MQTTClient {
    /// Re-authenticates this client with the method of its CONNECT on the current connection (AUTH 0x19, §4.12.1).
    ///
    /// Servers whose sessions expire need this. Messages continue meanwhile. Only one exchange runs at a time: a call
    /// during another one waits for its end.
    ///
    /// If the server refuses, or does not prove its own identity, the connection ends. If it does not answer within
    /// ``MQTTTimeouts/acknowledgement``, only the call fails; a late answer counts for the next call. A cancelled task
    /// stops waiting, but the exchange continues.
    ///
    /// - Throws: ``MQTTClientError/invalid(_:)`` without ``MQTTClientConfiguration/authentication``, before MQTT 5 or with a
    ///   raw CONNECT, `notConnected`, `notAuthenticated`, `timedOut(.authentication)`, `connectionLost` (`disconnected`
    ///   with the server's reason, 0x87 as a rule, if it refused), `disconnected`, `cancelled`.
    public func reauthenticate() async throws(MQTTClientError) {
        try await self.perform { (core: ClientCore, waiter: Waiter<Void>) in core.reauthenticate(waiter) }
    }
}

extension MQTTClient {
    /// Sends raw bytes, valid or not, for tests of servers.
    ///
    /// They are sent after all earlier writes, in one piece if no layer lies between client and socket. The client does
    /// not interpret them: they take no packet identifier, and no answer is awaited. An acknowledgement that they cause
    /// is ignored; ``MQTTClientHooks/received`` shows it. Bytes that break the framing for the server break it for the
    /// client's later packets too.
    ///
    /// During `connect` the bytes wait for the transport, but not for CONNACK. They are sent after CONNECT or its
    /// replacement (``MQTTClientConfiguration/rawConnect``).
    ///
    /// - Parameter bytes: the bytes on the wire; TLS and WebSocket still wrap them.
    /// - Throws: ``MQTTClientError/notConnected`` without a connection or after DISCONNECT, `noConnection` and the
    ///   other errors of `connect` if it failed, `connectionLost` if the kernel had not taken all bytes,
    ///   `disconnected`, `cancelled`.
    public func sendRaw(_ bytes: [UInt8]) async throws(MQTTClientError) {
        _ = try await self.perform { (core: ClientCore, waiter: Waiter<MQTTPublishResult>) in
            core.sendRaw(bytes, waiter)
        }
    }
}

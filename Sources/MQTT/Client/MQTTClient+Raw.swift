extension MQTTClient {
    /// Sends any bytes, right or wrong: for those who test servers.
    ///
    /// They go out behind all that was written before, in one piece if nothing stands between the client and the socket.
    /// The client knows nothing of what they mean: no packet identifier is taken for them, no answer to them is awaited,
    /// and an acknowledgement that comes of them is passed over; ``MQTTClientHooks/received`` shows it. What breaks the
    /// framing for the server breaks it for the client's own packets behind it too.
    ///
    /// During `connect` the bytes wait for the transport, and go out behind CONNECT or what stands in its place
    /// (``MQTTClientConfiguration/rawConnect``); CONNACK is not waited for.
    ///
    /// - Parameter bytes: as they are to be on the wire; TLS and WebSocket still wrap them.
    /// - Throws: ``MQTTClientError/notConnected`` without a connection or behind DISCONNECT, `noConnection` and the other
    ///   errors of `connect` if it never came, `connectionLost` if the kernel had not taken all, `disconnected`,
    ///   `cancelled`.
    public func sendRaw(_ bytes: [UInt8]) async throws(MQTTClientError) {
        _ = try await self.perform { (core: ClientCore, waiter: Waiter<MQTTPublishResult>) in
            core.sendRaw(bytes, waiter)
        }
    }
}

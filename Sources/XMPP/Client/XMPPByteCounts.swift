/// Bytes of a client's streams: headers, stanzas and keep-alive characters; TLS and WebSocket frames are not counted.
public struct XMPPByteCounts: Hashable, Sendable {
    /// Bytes sent over all connections of the client.
    public let sent: UInt64
    /// Bytes received over all connections of the client.
    public let received: UInt64
    /// Bytes sent over the present connection, or the last one.
    public let sentOnConnection: UInt64
    /// Bytes received over the present connection, or the last one.
    public let receivedOnConnection: UInt64
}

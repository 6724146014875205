/// The reason why an opening handshake failed (RFC 6455 §4.1).
package enum WebSocketFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The server answered with this status instead of 101.
    case status(Int)
    /// The bytes are not the head of an HTTP/1.1 answer.
    case notHTTP
    /// The head of the answer is longer than ``WebSocketHead/maximumSize``.
    case headTooLarge
    /// Status 101 without "Upgrade: websocket" and "Connection: Upgrade".
    case noUpgrade
    /// `Sec-WebSocket-Accept` does not match the client's key.
    case wrongAccept
    /// The server selected none of the offered subprotocols ([MQTT-6.0.0-4], RFC 7395 §3.1).
    case noSubprotocol(offered: [String])
    /// The server selected a subprotocol that was not offered.
    case wrongSubprotocol(String)
    /// The server selected an extension; none was offered.
    case extensions(String)
    /// The server closed the connection before its answer was complete.
    case closed

    package var description: String {
        switch self {
        case .status(let code): "the server answered the upgrade with HTTP status \(code)"
        case .notHTTP: "the server's answer to the upgrade is not HTTP/1.1"
        case .headTooLarge:
            "the head of the server's answer to the upgrade is longer than \(WebSocketHead.maximumSize) bytes"
        case .noUpgrade: "the server answered with status 101, but not with an upgrade to websocket"
        case .wrongAccept: "the server's Sec-WebSocket-Accept does not answer the key that was sent"
        case .noSubprotocol(let offered):
            "the server selected no subprotocol; offered: \(offered.joined(separator: ", "))"
        case .wrongSubprotocol(let name): "the server selected the subprotocol '\(name)', which was not offered"
        case .extensions(let names): "the server selected the extensions '\(names)', and none was offered"
        case .closed: "the server closed the connection during the upgrade"
        }
    }
}

/// An error in the frames of an open WebSocket; the connection ends with a Close frame with ``code``.
package struct WebSocketViolation: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Rule: Hashable, Sendable {
        /// RSV1 to RSV3 are for extensions (§5.2).
        case reservedBits
        case reservedOpcode(UInt8)
        /// Control frames must not be fragmented (§5.5).
        case fragmentedControl
        /// Control frames have at most 125 bytes (§5.5).
        case longControl
        /// A client masks every frame, a server none (§5.1).
        case masked, unmasked
        /// The length is negative or not in its shortest form (§5.2).
        case length
        /// A continuation without a message, or a new message inside one (§5.4).
        case fragments
        /// MQTT requires binary messages ([MQTT-6.0.0-1]).
        case text
        /// XMPP requires text messages (RFC 7395 §3.2).
        case binary
        case messageTooLarge(limit: Int)
        /// A Close frame with one byte, or with a code that must not be sent (§7.4).
        case closeCode
        /// The reason of a Close frame is not UTF-8 (§5.5.1).
        case closeReason
    }

    package let rule: Rule

    package init(_ rule: Rule) { self.rule = rule }

    /// The code of our Close frame (§7.4.1).
    package var code: UInt16 {
        switch self.rule {
        case .text, .binary: 1003
        case .closeReason: 1007
        case .messageTooLarge: 1009
        case .reservedBits, .reservedOpcode, .fragmentedControl, .longControl, .masked, .unmasked, .length,
            .fragments, .closeCode:
            1002
        }
    }

    package var description: String {
        switch self.rule {
        case .reservedBits: "a WebSocket frame with reserved bits"
        case .reservedOpcode(let code): "a WebSocket frame with the reserved opcode \(code)"
        case .fragmentedControl: "a WebSocket control frame in fragments"
        case .longControl: "a WebSocket control frame of over 125 bytes"
        case .masked: "a masked WebSocket frame from a server"
        case .unmasked: "an unmasked WebSocket frame from a client"
        case .length: "a WebSocket frame whose length is not in its shortest form"
        case .fragments: "WebSocket fragments out of order"
        case .text: "a WebSocket text frame; MQTT is binary"
        case .binary: "a WebSocket binary frame; XMPP is text"
        case .messageTooLarge(let limit): "a WebSocket message of over \(limit) bytes"
        case .closeCode: "a WebSocket close code that is never sent"
        case .closeReason: "a WebSocket close reason that is not UTF-8"
        }
    }
}

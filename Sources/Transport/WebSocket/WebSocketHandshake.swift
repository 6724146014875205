import Crypto
import DataEncodings

/// The two heads of an opening handshake (RFC 6455 §4), and the checks of each side.
package enum WebSocketHandshake {
    /// The answer that proves that the server has read the key (§4.2.2).
    package static func accept(_ key: String) -> String {
        let hash = Insecure.SHA1.hash(data: Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))
        return Base64.encode(Array(hash))
    }

    /// A key for one handshake: 16 unpredictable bytes.
    package static func makeKey() -> String {
        var random = SystemRandomNumberGenerator()
        return Base64.encode((0..<16).map { _ in UInt8.random(in: 0...255, using: &random) })
    }

    // MARK: Client

    package static func request(_ settings: WebSocketSettings, target: Target, isSecure: Bool, key: String) -> [UInt8] {
        let isUsual = target.port == (isSecure ? 443 : 80)
        let address = target.description
        let host = settings.host ?? (isUsual ? String(address.dropLast("\(target.port)".count + 1)) : address)
        var text = "GET \(settings.path) HTTP/1.1\r\nHost: \(host)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        text += "Sec-WebSocket-Key: \(key)\r\nSec-WebSocket-Version: 13\r\n"
        text += "Sec-WebSocket-Protocol: \(settings.subprotocols.joined(separator: ", "))\r\n"
        for (name, value) in settings.headers { text += "\(name): \(value)\r\n" }
        return Array((text + "\r\n").utf8)
    }

    /// The start of every answer.
    static let answerStart = Array("HTTP/1.".utf8)

    /// Checks the server's answer (§4.1).
    package static func check(_ head: WebSocketHead, key: String, offered: [String]) throws(WebSocketFailure) {
        // "HTTP/1.1 101 Switching Protocols"; the reason phrase and its blank may be missing.
        let parts = head.line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, parts[0] == "HTTP/1.1" || parts[0] == "HTTP/1.0", parts[1].utf8.count == 3,
            parts[1].utf8.allSatisfy({ (48...57).contains($0) }), let status = Int(parts[1]), status >= 100
        else { throw .notHTTP }
        guard status == 101 else { throw .status(status) }
        guard parts[0] == "HTTP/1.1", head.list("upgrade", has: "websocket"), head.list("connection", has: "upgrade")
        else { throw .noUpgrade }
        guard head.value("sec-websocket-accept") == Self.accept(key) else { throw .wrongAccept }
        if let names = head.value("sec-websocket-extensions"), !names.isEmpty { throw .extensions(names) }
        guard let name = head.value("sec-websocket-protocol"), !name.isEmpty else {
            throw .noSubprotocol(offered: offered)
        }
        guard offered.contains(name) else { throw .wrongSubprotocol(name) }
    }

    // MARK: Server

    /// A refused request: the status of the answer, and one line of text for its reader.
    package struct Refusal: Error, Hashable, Sendable, CustomStringConvertible {
        package let status: Int
        package let words: String

        package var description: String { self.words }

        init(_ status: Int, _ words: String) {
            self.status = status
            self.words = words
        }

        static let notHTTP = Refusal(400, "this is no HTTP/1.1 request")
        static let tooLarge = Refusal(431, "a head has \(WebSocketHead.maximumSize) bytes at most")

        package var answer: [UInt8] {
            let reason =
                switch self.status {
                case 404: "Not Found"
                case 405: "Method Not Allowed"
                case 426: "Upgrade Required"
                case 431: "Request Header Fields Too Large"
                default: "Bad Request"
                }
            var text = "HTTP/1.1 \(self.status) \(reason)\r\nConnection: close\r\nContent-Type: text/plain\r\n"
            if self.status == 405 { text += "Allow: GET\r\n" }
            if self.status == 426 { text += "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" }
            text += "Content-Length: \(self.words.utf8.count + 1)\r\n\r\n\(self.words)\n"
            return Array(text.utf8)
        }
    }

    private static func listed(_ subprotocols: [String]) -> String {
        subprotocols.joined(separator: ", ").uppercased()
    }

    /// Checks a client's request (§4.2.1).
    ///
    /// - Parameters:
    ///   - head: the request.
    ///   - path: the only path served; `nil` allows any.
    ///   - subprotocols: the supported subprotocols.
    /// - Returns: the answer, with the first supported subprotocol of the client's list.
    /// - Throws: the refusal to send instead.
    package static func answer(
        _ head: WebSocketHead,
        path: String?,
        subprotocols: [String]
    ) throws(Refusal) -> [UInt8] {
        let parts = head.line.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[2].hasPrefix("HTTP/1."), head.fields.count(where: { $0.name == "host" }) == 1
        else { throw .notHTTP }
        guard parts[0] == "GET" else { throw Refusal(405, "a WebSocket is asked for with GET") }
        guard path == nil || parts[1].prefix(while: { $0 != "?" }) == path ?? "" else {
            throw Refusal(404, "\(Self.listed(subprotocols)) is spoken at \(path ?? "/")")
        }
        guard head.list("upgrade", has: "websocket"), head.list("connection", has: "upgrade") else {
            throw Refusal(426, "this port speaks \(Self.listed(subprotocols)) over WebSocket")
        }
        guard head.value("sec-websocket-version") == "13" else { throw Refusal(426, "the version is 13") }
        guard let key = head.value("sec-websocket-key"), Base64.decode(key.utf8)?.count == 16 else {
            throw Refusal(400, "Sec-WebSocket-Key is not 16 bytes in base64")
        }
        let offered = head.list("sec-websocket-protocol")
        guard let name = offered.first(where: subprotocols.contains) else {
            throw Refusal(400, "the subprotocol spoken here is \(subprotocols.joined(separator: ", "))")
        }
        let text =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Accept: \(Self.accept(key))\r\nSec-WebSocket-Protocol: \(name)\r\n\r\n"
        return Array(text.utf8)
    }
}

package import LoopContext
package import NIOCore

/// The state of a connection until its WebSocket is open; released after that.
final class WebSocketOpening {
    enum Role {
        case client(key: String, offered: [String], done: (Result<Void, ConnectError.Reason>) -> Void)
        case server(WebSocketServerSettings)
    }

    enum Step {
        /// The head is incomplete.
        case wait
        /// Open: the server's answer (empty for a client), and the first bytes of frames.
        case open(answer: [UInt8], rest: [UInt8])
        case failed(WebSocketFailure)
        case refused(WebSocketHandshake.Refusal)
    }

    let role: Role
    /// Ends the wait for a request.
    var timeout: Scheduled<Void>?
    private var bytes: [UInt8] = []
    private var searched = 0

    init(_ role: Role) { self.role = role }

    /// Takes the next bytes; they are copied, because all connections of the loop share the buffer.
    func received(_ buffer: ByteBuffer) -> Step {
        self.bytes += buffer.readableBytesView
        switch self.role {
        case .client(let key, let offered, _): return self.clientStep(key: key, offered: offered)
        case .server(let settings): return self.serverStep(settings)
        }
    }

    private func clientStep(key: String, offered: [String]) -> Step {
        let head: WebSocketHead?
        do throws(WebSocketHead.Problem) {
            head = try self.read(start: WebSocketHandshake.answerStart)
        } catch {
            return .failed(error == .tooLarge ? .headTooLarge : .notHTTP)
        }
        guard let head else { return .wait }
        do throws(WebSocketFailure) {
            try WebSocketHandshake.check(head, key: key, offered: offered)
            return .open(answer: [], rest: Array(self.bytes[head.size...]))
        } catch {
            return .failed(error)
        }
    }

    private func serverStep(_ settings: WebSocketServerSettings) -> Step {
        let head: WebSocketHead?
        do throws(WebSocketHead.Problem) {
            head = try self.read(start: [])
        } catch {
            return .refused(error == .tooLarge ? .tooLarge : .notHTTP)
        }
        guard let head else { return .wait }
        do throws(WebSocketHandshake.Refusal) {
            let answer = try WebSocketHandshake.answer(head, path: settings.path, subprotocols: settings.subprotocols)
            return .open(answer: answer, rest: Array(self.bytes[head.size...]))
        } catch {
            return .refused(error)
        }
    }

    private func read(start: [UInt8]) throws(WebSocketHead.Problem) -> WebSocketHead? {
        defer { self.searched = self.bytes.count }
        return try WebSocketHead.read(self.bytes, start: start, searched: self.searched)
    }
}

/// Settings of a server for WebSocket requests.
package struct WebSocketServerSettings: Hashable, Sendable {
    /// The only path served; `nil` allows any.
    package var path: String?
    /// The supported subprotocols; [MQTT-6.0.0-4] defines `mqtt` only.
    package var subprotocols = ["mqtt"]
    /// The largest message from a client in bytes, with all its fragments.
    package var maximumMessageSize = 1 << 29
    package var content = WebSocketContent.binary
    /// The time that a connection has for its request.
    package var deadline = TimeAmount.seconds(10)

    package init(path: String? = nil) { self.path = path }
}

/// Opens a WebSocket on a client's connection; one for each event loop.
package final class WebSocketLayer: ConnectLayer {
    package let phase = ConnectError.Phase.webSocket
    private let settings: WebSocketSettings
    private let isSecure: Bool
    private let buffers: WebSocketBuffers

    /// - Parameters:
    ///   - settings: the request.
    ///   - isSecure: whether TLS is below; selects the default port.
    ///   - receive: the owner of the buffers that connections read into, to give them back. Otherwise each client would
    ///     keep its first buffer of 64 KiB. `nil` if each connection has its own buffers.
    package init(_ settings: WebSocketSettings, isSecure: Bool, receive: ReceiveBuffer?) {
        self.settings = settings
        self.isSecure = isSecure
        self.buffers = WebSocketBuffers(receive: receive)
    }

    package func begin(
        _ channel: any Channel,
        client: Int,
        target: Target,
        done: @escaping (Result<Void, ConnectError.Reason>) -> Void
    ) {
        let key = WebSocketHandshake.makeKey()
        let handler = WebSocketHandler(client: self.settings, key: key, buffers: self.buffers, done: done)
        let pipeline = channel.pipeline.syncOperations
        do {
            try pipeline.addHandler(handler)
            let request = WebSocketHandshake.request(self.settings, target: target, isSecure: self.isSecure, key: key)
            try pipeline.context(handler: handler).writeAndFlush(NIOAny(ByteBuffer(bytes: request)), promise: nil)
        } catch {
            // The channel was closed in the meantime.
            done(.failure(.reset))
        }
    }
}

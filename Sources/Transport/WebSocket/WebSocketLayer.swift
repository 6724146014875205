package import LoopContext
package import NIOCore

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
            let request = WebSocketHandshake.request(
                self.settings,
                target: target,
                isSecure: self.isSecure,
                key: key
            )
            try pipeline.context(handler: handler).writeAndFlush(NIOAny(ByteBuffer(bytes: request)), promise: nil)
        } catch {
            // The channel was closed in the meantime.
            done(.failure(.reset))
        }
    }
}

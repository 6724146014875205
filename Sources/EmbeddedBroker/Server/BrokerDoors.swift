import LoopContext
import NIOCore
import NIOSSL
import Transport

/// Assembles the channel handlers of an accepted connection.
///
/// Confined to the broker's event loop.
final class BrokerDoors {
    let loop: BrokerLoop
    private let tls: NIOSSLContext?
    private let webSockets: WebSocketBuffers

    init(loop: BrokerLoop, tls: NIOSSLContext?) {
        self.loop = loop
        self.tls = tls
        self.webSockets = WebSocketBuffers(receive: loop.context.receive)
    }

    func admit(_ channel: any Channel, by transport: BrokerListener.Transport) throws {
        let pipeline = channel.pipeline.syncOperations
        guard transport != .tcp else {
            try channel.syncOptions?.setOption(.recvAllocator, value: self.loop.context.receive.makeAllocator())
            if let reader = self.makeProxyReader() { try pipeline.addHandler(reader) }
            return try pipeline.addHandler(BrokerLink(loop: self.loop, door: nil))
        }
        let door = SocketDoor()
        try pipeline.addHandler(door)
        if let reader = self.makeProxyReader() { try pipeline.addHandler(reader) }
        if transport.isSecure, let tls = self.tls {
            // TLS keeps the buffer it gets, so the loop's buffer would be reallocated for each read.
            let sizes = AdaptiveRecvByteBufferAllocator(minimum: 64, initial: 512, maximum: 16_384)
            try channel.syncOptions?.setOption(.recvAllocator, value: sizes)
            try pipeline.addHandler(NIOSSLServerHandler(context: tls))
        } else {
            try channel.syncOptions?.setOption(.recvAllocator, value: self.loop.context.receive.makeAllocator())
        }
        if transport.isWebSocket {
            try pipeline.addHandler(
                WebSocketHandler(server: self.loop.configuration.webSocket, buffers: self.webSockets)
            )
        }
        try pipeline.addHandler(BrokerLink(loop: self.loop, door: door))
    }

    private func makeProxyReader() -> ProxyHeaderHandler? {
        guard self.loop.configuration.readsProxyHeader else { return nil }
        let loop = self.loop
        return ProxyHeaderHandler(deadline: loop.configuration.connectDeadline, receive: loop.context.receive) {
            switch $0 {
            case .read(let header): loop.broker.proxied(from: header.addresses?.source.ipAddress)
            case .refused, .missing: loop.broker.proxyRefused()
            }
        }
    }
}

/// Sits next to the socket, so that a connection can be ended past all other handlers.
final class SocketDoor: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer

    private(set) var context: ChannelHandlerContext?

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }
}

package import LoopContext
package import NIOCore

/// Removes the PROXY header from the start of an accepted connection, then removes itself.
///
/// Later handlers get `channelActive` once the header is complete and valid. A connection without a valid header before
/// the deadline is closed without an answer.
package final class ProxyHeaderHandler: ChannelInboundHandler, RemovableChannelHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer

    /// The result for the connection.
    package enum Outcome: Hashable, Sendable {
        case read(ProxyHeader)
        case refused(ProxyHeader.Problem)
        /// The client closed, or the deadline passed, before the header was complete.
        case missing
    }

    private let deadline: TimeAmount
    private let receive: ReceiveBuffer?
    /// `nil` once it has been called.
    private var done: ((Outcome) -> Void)?
    private var timeout: Scheduled<Void>?
    /// At most one read more than the largest header.
    private var bytes: [UInt8] = []

    /// - Parameters:
    ///   - deadline: the time that a connection has for its header.
    ///   - receive: the loop's receive buffer, if reads are lent from it.
    ///   - done: called once.
    package init(deadline: TimeAmount, receive: ReceiveBuffer?, done: @escaping (Outcome) -> Void) {
        self.deadline = deadline
        self.receive = receive
        self.done = done
    }

    package func channelActive(context: ChannelHandlerContext) {
        let channel = context.channel
        self.timeout = context.eventLoop.assumeIsolated().scheduleTask(in: self.deadline) { [weak self] in
            self?.end(.missing)
            channel.close(promise: nil)
        }
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = self.unwrapInboundIn(data)
        guard self.done != nil else {
            self.receive?.give(back: buffer)
            return
        }
        // Copied, because all connections of the loop share the buffer.
        self.bytes += buffer.readableBytesView
        self.receive?.give(back: buffer)
        do throws(ProxyHeader.Problem) {
            guard let header = try ProxyHeader.read(self.bytes) else { return }
            self.open(header, context)
        } catch {
            self.end(.refused(error))
            context.close(promise: nil)
        }
    }

    private func open(_ header: ProxyHeader, _ context: ChannelHandlerContext) {
        let rest = self.bytes[header.size...]
        self.end(.read(header))
        context.fireChannelActive()
        if !rest.isEmpty, context.channel.isActive {
            context.fireChannelRead(self.wrapInboundOut(ByteBuffer(bytes: rest)))
        }
        context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    }

    private func end(_ outcome: Outcome) {
        self.timeout?.cancel()
        self.timeout = nil
        self.bytes = []
        self.done.take()?(outcome)
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        if self.done == nil { context.fireChannelReadComplete() }
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard self.done != nil, case .inputClosed? = event as? ChannelEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        self.end(.missing)
        context.close(promise: nil)
    }

    package func channelInactive(context: ChannelHandlerContext) {
        self.end(.missing)
        context.fireChannelInactive()
    }
}

/// The two forms of the header that passes a connection's addresses to a server (haproxy's proxy-protocol.txt).
package enum ProxyProtocol: String, Hashable, Sendable, CaseIterable {
    /// One line of text.
    case v1
    /// Binary.
    case v2

    /// The header for a connection from `source` to `destination`.
    ///
    /// If an address is missing or not of TCP, or the families differ, the header names no addresses.
    package func header(from source: SocketAddress?, to destination: SocketAddress?) -> [UInt8] {
        switch (source?.protocol, destination?.protocol) {
        case (.inet, .inet): return self.header(family: 4, source, destination)
        case (.inet6, .inet6): return self.header(family: 6, source, destination)
        default:
            // The receiver uses the addresses of the connection itself (§2.1, §2.2).
            return self == .v1 ? Array("PROXY UNKNOWN\r\n".utf8) : Self.signature + [0x21, 0x00, 0, 0]
        }
    }

    /// The header of the proxy's own connection.
    package var local: [UInt8] {
        // Version 1 has no separate form (§2.1); version 2 has LOCAL (§2.2).
        self == .v1 ? Array("PROXY UNKNOWN\r\n".utf8) : Self.signature + [0x20, 0x00, 0, 0]
    }

    /// CR LF CR LF NUL CR LF QUIT LF.
    static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]

    private func header(family: Int, _ source: SocketAddress?, _ destination: SocketAddress?) -> [UInt8] {
        let ports = [source?.port ?? 0, destination?.port ?? 0]
        switch self {
        case .v1:
            let hosts = [source, destination].map { $0?.ipAddress ?? "" }
            return Array("PROXY TCP\(family) \(hosts[0]) \(hosts[1]) \(ports[0]) \(ports[1])\r\n".utf8)
        case .v2:
            let addresses = [source, destination].flatMap { $0.map(Self.bytes) ?? [] }
            let body = addresses + ports.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
            // Version 2, PROXY; AF_INET or AF_INET6 over a stream; the length of what follows.
            return Self.signature + [0x21, family == 4 ? 0x11 : 0x21, 0, UInt8(body.count)] + body
        }
    }

    /// The address itself, without family and port (for IPv6 without the flow too).
    private static func bytes(_ address: SocketAddress) -> [UInt8] {
        let place = address.protocol == .inet ? 4..<8 : 8..<24
        return address.withSockAddr { Array(UnsafeRawBufferPointer(start: $0, count: $1)[place]) }
    }
}

package enum ProxyAddresses: Hashable, Sendable {
    /// The addresses of the connection itself.
    case own
    case claimed(source: SocketAddress, destination: SocketAddress)
    /// No addresses, as for a proxy's own connection: the receiver uses the connection's.
    case unknown
}

/// Sends a PROXY header with the client's own addresses, unless others are set.
package final class ProxyLayer: ConnectLayer, Sendable {
    package let phase = ConnectError.Phase.proxy
    private let version: ProxyProtocol
    private let addresses: ProxyAddresses

    package init(_ version: ProxyProtocol, _ addresses: ProxyAddresses = .own) {
        self.version = version
        self.addresses = addresses
    }

    private func header(on channel: any Channel) -> [UInt8] {
        switch self.addresses {
        case .own: self.version.header(from: channel.localAddress, to: channel.remoteAddress)
        case .claimed(let source, let destination): self.version.header(from: source, to: destination)
        case .unknown: self.version.local
        }
    }

    package func begin(
        _ channel: any Channel,
        client: Int,
        target: Target,
        done: @escaping (Result<Void, ConnectError.Reason>) -> Void
    ) {
        channel.writeAndFlush(ByteBuffer(bytes: self.header(on: channel))).assumeIsolated().whenComplete { result in
            done(result.mapError { ConnectError.Reason($0, isBinding: false) })
        }
    }
}

import LoopContext
package import NIOCore

/// A WebSocket between a socket, or TLS, and the one handler of a connection, on either side (RFC 6455).
///
/// Bytes in, bytes out: what comes in data frames is handed on once per read, or as text once per message and whole;
/// what is written leaves as one frame a write. Our end of the stream is a Close frame in front of the FIN, and the other side's Close frame is as good as
/// its FIN: ``NIOCore/ChannelEvent/inputClosed``. Some 350 bytes for each connection, its place in the pipeline
/// included.
package final class WebSocketHandler: ChannelDuplexHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer
    package typealias OutboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    private let isClient: Bool
    private let content: WebSocketContent
    private let buffers: WebSocketBuffers
    /// Until the WebSocket is open.
    private var opening: WebSocketOpening?
    private var reader: WebSocketReader
    /// The code of our Close frame.
    private var closeCode: UInt16 = 1000
    private var hasSentClose = false
    /// Nothing more is read: the other side has ended the stream, or broken a rule.
    private var hasEnded = false
    /// The answer to the last ping, while the channel has no room.
    private var pong: [UInt8]?
    /// `nil` for binary data, which has no messages.
    private let messages: WebSocketMessages?
    /// Whether this read turn brought bytes, and whether some of them were handed on.
    private var hasRead = false
    private var hasDelivered = false

    init(
        client settings: WebSocketSettings,
        key: String,
        buffers: WebSocketBuffers,
        done: @escaping (Result<Void, ConnectError.Reason>) -> Void
    ) {
        self.isClient = true
        self.content = settings.content
        self.messages = settings.content == .text ? WebSocketMessages() : nil
        self.buffers = buffers
        self.opening = WebSocketOpening(.client(key: key, offered: settings.subprotocols, done: done))
        self.reader = WebSocketReader(
            isMasked: false,
            content: settings.content,
            limit: settings.maximumMessageSize
        )
    }

    /// The server's side, on a channel that has yet to become active.
    ///
    /// The handlers behind it hear of `channelActive` once the WebSocket is open. A request that asks for something
    /// else is answered with one line and the end of the connection.
    package init(server settings: WebSocketServerSettings, buffers: WebSocketBuffers) {
        self.isClient = false
        self.content = settings.content
        self.messages = settings.content == .text ? WebSocketMessages() : nil
        self.buffers = buffers
        self.opening = WebSocketOpening(.server(settings))
        self.reader = WebSocketReader(isMasked: true, content: settings.content, limit: settings.maximumMessageSize)
    }

    // MARK: Opening

    package func channelActive(context: ChannelHandlerContext) {
        guard let opening = self.opening, case .server(let settings) = opening.role else {
            return context.fireChannelActive()
        }
        let channel = context.channel
        opening.timeout = context.eventLoop.assumeIsolated().scheduleTask(in: settings.deadline) { [weak self] in
            if self?.opening != nil { channel.close(promise: nil) }
        }
    }

    private func open(_ opening: WebSocketOpening, _ buffer: ByteBuffer, _ context: ChannelHandlerContext) {
        switch opening.received(buffer) {
        case .wait: break
        case .open(let answer, let rest):
            self.finishOpening(.success(()), context, answer: answer)
            if !rest.isEmpty { self.take(ByteBuffer(bytes: rest), context) }
        case .failed(let failure):
            self.finishOpening(.failure(.webSocket(failure)), context)
        case .refused(let refusal):
            self.end(opening)
            let channel = context.channel
            context.writeAndFlush(self.wrapOutboundOut(ByteBuffer(bytes: refusal.answer)))
                .assumeIsolated().whenComplete { _ in channel.close(promise: nil) }
        }
    }

    private func finishOpening(
        _ result: Result<Void, ConnectError.Reason>,
        _ context: ChannelHandlerContext,
        answer: [UInt8] = []
    ) {
        guard let opening = self.opening else { return }
        if case .failure = result { self.end(opening) }
        opening.timeout?.cancel()
        self.opening = nil
        switch opening.role {
        case .client(_, _, let done): done(result)
        case .server:
            context.writeAndFlush(self.wrapOutboundOut(ByteBuffer(bytes: answer)), promise: nil)
            context.fireChannelActive()
        }
    }

    /// No WebSocket will come of this connection.
    private func end(_ opening: WebSocketOpening) {
        opening.timeout?.cancel()
        self.opening = nil
        self.hasEnded = true
        self.hasSentClose = true
    }

    // MARK: Reading

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = self.unwrapInboundIn(data)
        self.hasRead = true
        if let opening = self.opening {
            self.buffers.receive?.give(back: buffer)
            self.open(opening, buffer, context)
        } else if self.hasEnded {
            self.buffers.receive?.give(back: buffer)
        } else {
            self.take(buffer, context)
        }
    }

    private func take(_ buffer: ByteBuffer, _ context: ChannelHandlerContext) {
        let found = buffer.withUnsafeReadableBytes { bytes in
            WebSocketFindings(in: bytes, &self.reader, content: self.content, buffers: self.buffers)
        }
        // Before the data is handed on, whose owner may close; written behind it, for a write that fails reads the
        // socket dry at once, into the buffer that the data may lie in.
        if let ping = found.ping { self.pong = ping }
        if let messages = self.messages {
            self.buffers.receive?.give(back: buffer)
            messages.take(found, self.buffers) { message in
                self.hasDelivered = true
                context.fireChannelRead(self.wrapInboundOut(message))
            }
        } else if found.isGathered {
            self.buffers.receive?.give(back: buffer)
            self.hasDelivered = true
            context.fireChannelRead(self.wrapInboundOut(self.buffers.inbound))
        } else if let piece = found.piece {
            var narrow = buffer
            narrow.moveWriterIndex(to: buffer.readerIndex + piece.upperBound)
            narrow.moveReaderIndex(forwardBy: piece.lowerBound)
            self.hasDelivered = true
            context.fireChannelRead(self.wrapInboundOut(narrow))
        } else {
            self.buffers.receive?.give(back: buffer)
        }
        if self.pong != nil { self.sendPong(context) }
        if let violation = found.violation {
            self.hasEnded = true
            self.closeCode = violation.code
            context.fireErrorCaught(violation)
        } else if let code = found.close {
            self.received(close: code, context)
        }
    }

    /// The other side writes no more; the owner answers as it answers a FIN.
    private func received(close code: UInt16, _ context: ChannelHandlerContext) {
        self.hasEnded = true
        self.pong = nil
        // §5.5.1: the answer usually repeats the code.
        self.closeCode = code
        let wasFirst = !self.hasSentClose
        context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        // §7.1.1: with both Close frames on their way it is the server that closes.
        if !self.isClient, !wasFirst { context.close(promise: nil) }
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        // A turn that brought frames but no data is none for those behind; one without any bytes is the FIN.
        let isNews = self.hasDelivered || !self.hasRead
        self.hasRead = false
        self.hasDelivered = false
        if isNews, self.opening == nil { context.fireChannelReadComplete() }
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .inputClosed? = event as? ChannelEvent else { return context.fireUserInboundEventTriggered(event) }
        if let opening = self.opening {
            self.fail(opening, .webSocket(.closed), context)
        } else if !self.hasEnded {
            self.hasEnded = true
            context.fireUserInboundEventTriggered(event)
        }
    }

    package func channelInactive(context: ChannelHandlerContext) {
        if let opening = self.opening { self.fail(opening, .webSocket(.closed), context) }
        context.fireChannelInactive()
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let opening = self.opening else { return context.fireErrorCaught(error) }
        let reason: ConnectError.Reason =
            switch TLSCaught(error, usesPreSharedKey: false) {
            // A server that refuses a client's certificate may say so once TLS is up on our side (RFC 8446 §4.4.2).
            case .failure(let failure): .tls(failure)
            case .endWithoutClose: .webSocket(.closed)
            case .unverified: .tls(.otherCertificate("behind the handshake"))
            case .other(let error): ConnectError.Reason(error, isBinding: false)
            }
        self.fail(opening, reason, context)
    }

    private func fail(_ opening: WebSocketOpening, _ reason: ConnectError.Reason, _ context: ChannelHandlerContext) {
        switch opening.role {
        case .client: self.finishOpening(.failure(reason), context)
        case .server:
            self.end(opening)
            context.close(promise: nil)
        }
    }

    package func channelWritabilityChanged(context: ChannelHandlerContext) {
        if self.pong != nil { self.sendPong(context) }
        context.fireChannelWritabilityChanged()
    }

    /// Answers a ping as soon as there is room; of several that wait, the last (§5.5.3).
    private func sendPong(_ context: ChannelHandlerContext) {
        guard context.channel.isWritable, !self.hasSentClose, let payload = self.pong.take() else { return }
        context.writeAndFlush(self.wrapOutboundOut(self.frame(.pong, payload)), promise: nil)
    }

    // MARK: Writing

    package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let payload = self.unwrapOutboundIn(data)
        guard !self.hasSentClose, self.opening == nil else {
            promise?.fail(ChannelError.outputClosed)
            return
        }
        guard self.isClient || payload.readableBytes < Self.largestCopied else {
            let header = self.buffers.header(self.dataOpcode, length: payload.readableBytes)
            context.write(self.wrapOutboundOut(header), promise: nil)
            return context.write(data, promise: promise)
        }
        let key = self.isClient ? self.buffers.nextKey() : 0
        let frame = payload.withUnsafeReadableBytes { self.buffers.frame(self.dataOpcode, $0, key: key) }
        context.write(self.wrapOutboundOut(frame), promise: promise)
    }

    private var dataOpcode: WebSocketOpcode { self.content == .text ? .text : .binary }

    /// From here on a server has the payload follow its header by itself, for it need not be masked.
    private static let largestCopied = 16_384

    private func frame(_ opcode: WebSocketOpcode, _ payload: [UInt8]) -> ByteBuffer {
        payload.withUnsafeBytes { self.buffers.frame(opcode, $0, key: self.isClient ? self.buffers.nextKey() : 0) }
    }

    package func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if mode != .input, !self.hasSentClose, self.opening == nil, context.channel.isActive {
            self.hasSentClose = true
            // §5.5.2: a ping is answered unless the other side's Close frame has come.
            if let payload = self.pong.take() {
                context.write(self.wrapOutboundOut(self.frame(.pong, payload)), promise: nil)
            }
            let code = [UInt8(self.closeCode >> 8), UInt8(truncatingIfNeeded: self.closeCode)]
            context.writeAndFlush(self.wrapOutboundOut(self.frame(.close, code)), promise: nil)
        }
        context.close(mode: mode, promise: promise)
    }
}

import LoopContext
package import NIOCore

/// A WebSocket between a socket, or TLS, and the one handler of a connection, for client and server (RFC 6455).
///
/// Binary data is passed on once per read, and text once per complete message. Each write becomes one frame. Our end of
/// the stream is a Close frame before the FIN. The peer's Close frame counts as its FIN:
/// ``NIOCore/ChannelEvent/inputClosed``. A connection takes about 350 bytes, including its place in the pipeline.
package final class WebSocketHandler: ChannelDuplexHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer
    package typealias OutboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    private let isClient: Bool
    private let content: WebSocketContent
    private let buffers: WebSocketBuffers
    /// The handshake, until the WebSocket is open.
    private var opening: WebSocketOpening?
    private var reader: WebSocketReader
    /// The code of our Close frame.
    private var closeCode: UInt16 = 1000
    private var hasSentClose = false
    /// Reading has stopped: the peer has ended the stream, or broken a rule.
    private var hasEnded = false
    /// The answer to the last ping, while the channel has no room.
    private var pong: [UInt8]?
    /// `nil` for binary data, whose messages have no meaning.
    private let messages: WebSocketMessages?
    /// Whether this read turn brought bytes, and whether some of them were passed on.
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
        self.reader = WebSocketReader(isMasked: false, content: settings.content, limit: settings.maximumMessageSize)
    }

    /// Creates the server's side, on a channel that is not active yet.
    ///
    /// Later handlers get `channelActive` once the WebSocket is open. Any other request is answered with one line, and
    /// the connection ends.
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

    /// Ends a connection whose handshake failed.
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
        // Found before the data is passed on, because its owner may close. Written after it, because a failed write
        // makes NIO read the socket until it is empty, into the buffer that may hold the data.
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

    /// The peer sends no more data; the owner answers as it answers a FIN.
    private func received(close code: UInt16, _ context: ChannelHandlerContext) {
        self.hasEnded = true
        self.pong = nil
        // The answer usually repeats the code (§5.5.1).
        self.closeCode = code
        let wasFirst = !self.hasSentClose
        context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        // After both Close frames the server closes the connection (§7.1.1).
        if !self.isClient, !wasFirst { context.close(promise: nil) }
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        // A turn with frames but no data is not reported to later handlers; a turn without any bytes is the FIN.
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
            // A server that refuses a client's certificate may report it after TLS is up on our side (RFC 8446 §4.4.2).
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

    /// Answers a ping as soon as there is room; if several wait, only the last (§5.5.3).
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

    /// Above this size a server writes the payload after its header without a copy, because it is not masked.
    private static let largestCopied = 16_384

    private func frame(_ opcode: WebSocketOpcode, _ payload: [UInt8]) -> ByteBuffer {
        payload.withUnsafeBytes { self.buffers.frame(opcode, $0, key: self.isClient ? self.buffers.nextKey() : 0) }
    }

    package func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if mode != .input, !self.hasSentClose, self.opening == nil, context.channel.isActive {
            self.hasSentClose = true
            // A ping is answered unless the peer's Close frame has arrived (§5.5.2).
            if let payload = self.pong.take() {
                context.write(self.wrapOutboundOut(self.frame(.pong, payload)), promise: nil)
            }
            let code = [UInt8(self.closeCode >> 8), UInt8(truncatingIfNeeded: self.closeCode)]
            context.writeAndFlush(self.wrapOutboundOut(self.frame(.close, code)), promise: nil)
        }
        context.close(mode: mode, promise: promise)
    }
}

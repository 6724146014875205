import NIOCore
import NIOHTTP1

/// One client: answers its requests one after the other, or is its event stream.
final class LiveConnection: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum State {
        /// A request is to come.
        case waiting
        case answering
        case streaming(EventPipe)
        /// The last response is out; what still comes in is thrown away, since closing on unread bytes would reset the
        /// connection and could destroy the response.
        case lingering
        case closed
    }

    private enum Item {
        case request(HTTPRequestHead)
        case failure(status: Int)
    }

    private let hub: LiveHub
    private var context: ChannelHandlerContext?
    private var state = State.waiting
    /// Requests that came before the response to an earlier one was out.
    private var queue: CircularBuffer<Item> = []
    /// False after a request that has to be the last one.
    private var takesRequests = true
    private var isInputClosed = false
    private var isFinishing = false
    private var isReadHeld = false
    /// Whether it is counted as an open event stream.
    private var isStream = false
    private var timer: Scheduled<Void>?

    init(_ hub: LiveHub) { self.hub = hub }

    // MARK: - Events of the channel

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.end() }

    func channelActive(context: ChannelHandlerContext) {
        self.setTimer(self.hub.limits.idleSeconds)
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.end()
        context.fireChannelInactive()
    }

    private func end() {
        self.timer?.cancel()
        self.state = .closed
        self.context = nil
        self.hub.remove(self)
        if self.isStream { self.hub.streamEnds() }
        self.isStream = false
    }

    /// Reads nothing more with a request in the queue: the client has to wait for its responses.
    func read(context: ChannelHandlerContext) {
        if self.queue.isEmpty {
            context.read()
        } else {
            self.isReadHeld = true
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard self.takesRequests, case .head(let head) = self.unwrapInboundIn(data) else { return }
        self.queue.append(.request(head))
        self.next()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? HTTPParserError else {
            // The decoder complains about each read behind an error, and about much that it does not decode.
            if error is ByteToMessageDecoderError, !self.takesRequests { return }
            return self.close()
        }
        guard self.takesRequests else { return }
        self.takesRequests = false
        let status =
            switch error {
            case .headerOverflow: 431
            case .invalidVersion: 505
            default: 400
            }
        self.queue.append(.failure(status: status))
        self.next()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed? = event as? ChannelEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        self.isInputClosed = true
        switch self.state {
        // A client that closed its side still reads its response.
        case .answering: break
        case .waiting, .streaming, .lingering, .closed: self.close()
        }
    }

    // MARK: - Requests

    /// Begins to answer the next request, if none is being answered.
    private func next() {
        guard case .waiting = self.state, let context = self.context else { return }
        guard let item = self.queue.popFirst() else {
            if self.isInputClosed || self.isFinishing { return self.close() }
            if self.isReadHeld {
                self.isReadHeld = false
                context.read()
            }
            return
        }
        self.state = .answering
        self.setTimer(self.hub.limits.idleSeconds)
        switch item {
        case .failure(let status): self.refuse(status, isLast: true)
        case .request(let head): self.answer(head, on: context.eventLoop)
        }
    }

    private func answer(_ head: HTTPRequestHead, on eventLoop: any EventLoop) {
        // Nothing is decoded behind a request for another protocol.
        let keepsAlive = head.isKeepAlive && head.headers["upgrade"].isEmpty
        let isHead = head.method == .HEAD
        switch LiveAnswer(to: head, routes: self.hub.routes, hosts: self.hub.hosts, limits: self.hub.limits) {
        case .refusal(let status, let allow, let isLast):
            self.refuse(status, allow: allow, isHead: isHead, isLast: isLast || !keepsAlive)
        case .events(let request): self.stream(request, isHead: isHead)
        case .response(let request, let make):
            eventLoop.makeFutureWithTask { await make(request) }.assumeIsolated().whenSuccess { response in
                self.respond(response, isHead: isHead, keepsAlive: keepsAlive) {
                    if !isHead, response.status == 200 { self.hub.counter.complete(request.path) }
                }
            }
        }
    }

    private func refuse(_ status: Int, allow: String? = nil, isHead: Bool = false, isLast: Bool) {
        self.respond(LiveText.refusal(status), allow: allow, isHead: isHead, keepsAlive: !isLast) {}
    }

    private func respond(
        _ response: LiveResponse,
        allow: String? = nil,
        isHead: Bool,
        keepsAlive: Bool,
        done: @escaping () -> Void
    ) {
        let keepsAlive = keepsAlive && !self.isFinishing
        if !keepsAlive { self.takesRequests = false }
        var text = LiveText.head(
            status: response.status,
            contentType: response.contentType,
            length: response.body.count,
            allow: allow,
            keepsAlive: keepsAlive
        )
        if !isHead { text.writeBytes(response.body) }
        self.write(text) {
            done()
            guard keepsAlive else { return self.linger() }
            self.state = .waiting
            self.setTimer(self.hub.limits.idleSeconds)
            self.next()
        }
    }

    /// Writes and calls `done` when all of it is with the kernel; a failure closes.
    private func write(_ text: ByteBuffer, done: @escaping () -> Void) {
        guard let context = self.context else { return }
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { result in
            guard case .success = result else { return self.close() }
            // It may have closed meanwhile.
            if self.context != nil { done() }
        }
        context.writeAndFlush(self.wrapOutboundOut(text), promise: promise)
    }

    // MARK: - Event streams

    private func stream(_ request: LiveRequest, isHead: Bool) {
        self.takesRequests = false
        self.queue.removeAll()
        var text = LiveText.head(status: 200, contentType: "text/event-stream", length: nil, keepsAlive: false)
        guard !isHead else { return self.write(text) { self.linger() } }
        text.writeString(LiveText.streamStart)
        if let latest = self.hub.latest { text.writeImmutableBuffer(latest) }
        var pipe = EventPipe()
        _ = pipe.offer(text, isLast: self.hub.isOver)
        self.state = .streaming(pipe)
        self.isStream = true
        self.hub.streamBegins()
        self.beat()
        if self.isInputClosed { return self.close() }
        self.write(text) {
            self.hub.counter.complete(request.path)
            self.wroteEvent()
        }
        if self.isReadHeld {
            self.isReadHeld = false
            self.context?.read()
        }
    }

    /// Sends an event, or keeps it until the one before is with the kernel.
    func offer(_ event: ByteBuffer, isLast: Bool) {
        guard case .streaming(var pipe) = self.state else { return }
        let text = pipe.offer(event, isLast: isLast)
        self.state = .streaming(pipe)
        if let text { self.write(text) { self.wroteEvent() } }
    }

    private func wroteEvent() {
        guard case .streaming(var pipe) = self.state else { return }
        let text = pipe.written()
        self.state = .streaming(pipe)
        if let text {
            self.write(text) { self.wroteEvent() }
        } else if self.isFinishing {
            self.close()
        }
    }

    private func beat() {
        self.setTimer(self.hub.limits.heartbeatSeconds) {
            guard case .streaming(var pipe) = self.state else { return }
            let action = pipe.beat()
            self.state = .streaming(pipe)
            switch action {
            case .write: self.write(ByteBuffer(string: LiveText.heartbeat)) { self.wroteEvent() }
            case .wait: break
            case .close: return self.close()
            }
            self.beat()
        }
    }

    // MARK: - The end

    /// Ends as soon as nothing is being answered or written.
    func finish() {
        self.isFinishing = true
        switch self.state {
        case .waiting: self.close()
        case .streaming(let pipe) where !pipe.isBusy: self.close()
        case .streaming, .answering, .lingering, .closed: break
        }
    }

    private func linger() {
        self.state = .lingering
        self.queue.removeAll()
        self.setTimer(self.hub.limits.lingerSeconds)
        guard !self.isInputClosed, let context = self.context else { return self.close() }
        context.close(mode: .output, promise: nil)
        if self.isReadHeld {
            self.isReadHeld = false
            context.read()
        }
    }

    func close() { self.context?.close(promise: nil) }

    /// Closes after a time, unless something else is set to happen.
    private func setTimer(_ seconds: Double) { self.setTimer(seconds) { self.close() } }

    private func setTimer(_ seconds: Double, _ body: @escaping () -> Void) {
        self.timer?.cancel()
        self.timer = self.context?.eventLoop.assumeIsolated().scheduleTask(in: self.hub.time(seconds), body)
    }
}

package import LoopContext
package import NIOCore
import NIOHTTP1
package import Transport

/// The reason why a scrape gave nothing.
package enum ScrapeError: Error, Hashable, CustomStringConvertible {
    case connect(String)
    case status(UInt)
    case tooLarge
    case timedOut
    case closed
    case noHTTP

    package var description: String {
        switch self {
        case .connect(let text): text
        case .status(let code): "status \(code)"
        case .tooLarge: "more than \(PrometheusText.mostBytes >> 20) MiB"
        case .timedOut: "no answer in \(ExporterClient.patience.nanoseconds / 1_000_000_000) s"
        case .closed: "the connection was closed before the whole answer"
        case .noHTTP: "the answer is no HTTP"
        }
    }
}

/// Gets the text of an exporter by HTTP/1.1, one request at a time, over one connection while the server keeps it.
///
/// Confined to its event loop. No redirect is followed.
package final class ExporterClient {
    package static let patience = TimeAmount.seconds(2)

    package typealias Answer = Result<[UInt8], ScrapeError>

    private let address: ExporterAddress
    private let context: LoopContext
    private let connector: TCPConnector
    private var channel: (any Channel)?
    private var done: ((Answer) -> Void)?
    private var timer: Scheduled<Void>?
    /// The number of the current request; answers to earlier ones are dropped.
    private var request = 0
    /// Whether the request was made on a connection that an earlier one had left open.
    private var isReused = false

    package init(_ address: ExporterAddress, tls: TLSSettings, _ context: LoopContext) throws(TLSSettingsError) {
        self.address = address
        self.context = context
        let layers: [any ConnectLayer] = address.isSecure ? [try TLSLayer(tls, loop: context)] : []
        let target = Target(host: address.host, port: address.port)
        self.connector = TCPConnector(context: context, targets: [target], layers: layers)
    }

    /// Calls `done` once, within ``patience``; there must be no other request.
    package func get(_ done: @escaping (Answer) -> Void) {
        self.request += 1
        self.done = done
        self.context.refresh()
        let deadline = NIODeadline.now() + Self.patience
        let box = NIOLoopBound(self, eventLoop: self.context.eventLoop)
        self.timer = self.context.eventLoop.scheduleTask(deadline: deadline) { [request = self.request] in
            box.value.finish(.failure(.timedOut), request)
        }
        if let channel = self.channel, channel.isActive {
            self.isReused = true
            self.send(on: channel)
        } else {
            self.connect(deadline)
        }
    }

    package func close() {
        self.finish(.failure(.closed), self.request)
        self.drop()
    }

    private func drop() {
        // The end of a channel is reported at once.
        let channel = self.channel
        self.channel = nil
        channel?.close(promise: nil)
    }

    private func connect(_ deadline: NIODeadline) {
        self.isReused = false
        self.channel = nil
        let request = self.request
        let handler = ExporterHandler(self)
        self.connector.connect(client: 0, deadline: deadline, handler: { handler }) { result in
            switch result {
            case .failure(let error): self.finish(.failure(.connect("\(error.reason)")), request)
            case .success(let connected):
                if let channel = connected.channel { self.connected(channel, handler, request) }
            }
        }
    }

    private func connected(_ channel: any Channel, _ handler: ExporterHandler, _ request: Int) {
        guard request == self.request, self.done != nil else { return channel.close(promise: nil) }
        do {
            let decoder = HTTPResponseDecoder(leftOverBytesStrategy: .dropBytes)
            try channel.pipeline.syncOperations.addHandlers(
                [HTTPRequestEncoder(), ByteToMessageHandler(decoder)],
                position: .before(handler)
            )
        } catch {
            channel.close(promise: nil)
            return self.finish(.failure(.closed), request)
        }
        self.channel = channel
        self.send(on: channel)
    }

    private func send(on channel: any Channel) {
        var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: self.address.path)
        head.headers.add(name: "Host", value: self.address.authority)
        head.headers.add(name: "User-Agent", value: "clamor")
        // The older format has no exemplars to carry.
        let formats = "text/plain;version=0.0.4,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1"
        head.headers.add(name: "Accept", value: formats)
        channel.write(HTTPClientRequestPart.head(head), promise: nil)
        channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
    }

    // MARK: - Calls of the handler

    fileprivate func answered(_ answer: Answer, keepsAlive: Bool) {
        if !keepsAlive { self.drop() }
        self.finish(answer, self.request)
    }

    fileprivate func ended(_ handler: ExporterHandler, _ error: ScrapeError) {
        guard let channel = self.channel, channel === handler.channel else { return }
        self.channel = nil
        guard self.done != nil else { return }
        // A server may close an idle connection at the moment of a request: the request is made again, once.
        if self.isReused, !handler.hasAnswer, error == .closed { return self.connect(.now() + Self.patience) }
        self.finish(.failure(error), self.request)
    }

    private func finish(_ answer: Answer, _ request: Int) {
        guard request == self.request, let done = self.done else { return }
        self.done = nil
        self.timer?.cancel()
        self.timer = nil
        // Bytes after a failure belong to no later request.
        if case .failure = answer { self.drop() }
        done(answer)
    }
}

/// Gathers the answers of an exporter.
private final class ExporterHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart

    private weak var client: ExporterClient?
    private(set) var channel: (any Channel)?
    private(set) var hasAnswer = false
    private var status: HTTPResponseStatus?
    private var keepsAlive = false
    private var body: [UInt8] = []

    init(_ client: ExporterClient) { self.client = client }

    func handlerAdded(context: ChannelHandlerContext) { self.channel = context.channel }
    func handlerRemoved(context: ChannelHandlerContext) { self.channel = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.hasAnswer = true
        switch self.unwrapInboundIn(data) {
        case .head(let head):
            self.status = head.status
            self.keepsAlive = head.isKeepAlive
            self.body = []
        case .body(let bytes):
            guard self.body.count + bytes.readableBytes <= PrometheusText.mostBytes else {
                self.body = []
                return self.fail(context, .tooLarge)
            }
            self.body += bytes.readableBytesView
        case .end:
            let body = self.body
            self.body = []
            self.hasAnswer = false
            guard let status = self.status else { return }
            self.client?.answered(
                status == .ok ? .success(body) : .failure(.status(status.code)),
                keepsAlive: self.keepsAlive && status == .ok
            )
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // A server that has closed its side answers no request any more.
        if case .inputClosed? = event as? ChannelEvent { self.fail(context, .closed) }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) { self.client?.ended(self, .closed) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        let parserError = error as? HTTPParserError
        self.fail(context, parserError == nil || parserError == .invalidEOFState ? .closed : .noHTTP)
    }

    private func fail(_ context: ChannelHandlerContext, _ error: ScrapeError) {
        self.client?.ended(self, error)
        context.close(promise: nil)
    }
}

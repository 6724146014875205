import LoopContext
import NIOCore
import NIOSSL
import NIOTLS
import Synchronization

/// Reports the end of one client's handshake, then converts the errors of the session; placed after NIOSSL.
///
/// It stays in the pipeline: errors that NIOSSL reports later (an alert, an end without close_notify) reach the
/// client's handler as a ``TLSFailure`` or not at all.
final class TLSHandshake: ChannelInboundHandler {
    typealias InboundIn = Never

    /// The time that a server has to refuse a client without certificate.
    ///
    /// In TLS 1.3 the client completes its handshake before the server sees that the requested certificate is missing.
    /// A first record after the handshake, usually a session ticket, means that the server accepts this. A server
    /// without tickets has this long to refuse. A later alert ends the connection when it arrives.
    static let objectionTime = TimeAmount.milliseconds(500)

    /// State that is needed only until the handshake is over.
    private struct Progress {
        let layer: TLSLayer
        let target: Target
        let done: (Result<Void, ConnectError.Reason>) -> Void
        var tls: NIOSSLClientHandler?
        weak var reader: TLSReader?
        /// The error of ``TLSCertificateCheck``.
        var checkFailure: TLSFailure?
        var wasAskedForCertificate = false
        var timer: Scheduled<Void>?
    }

    private var progress: Progress?
    /// The certificates were refused and the diagnosis is running: the failure is not reported yet.
    private var isDiagnosing = false
    /// The channel became inactive meanwhile; this is reported after the reason.
    private var isInactive = false
    let client: Int
    private let usesPreSharedKey: Bool

    init(layer: TLSLayer, client: Int, target: Target, done: @escaping (Result<Void, ConnectError.Reason>) -> Void) {
        self.client = client
        self.usesPreSharedKey = layer.context.settings.preSharedKey != nil
        self.progress = Progress(layer: layer, target: target, done: done)
    }

    func begins(_ tls: NIOSSLClientHandler, behind reader: TLSReader) {
        self.progress?.tls = tls
        self.progress?.reader = reader
    }

    /// The handshake never began: the caller reports that.
    func abandon() { self.progress = nil }
    func noteCertificateRequest() { self.progress?.wasAskedForCertificate = true }
    func noteCheck(_ failure: TLSFailure?) { self.progress?.checkFailure = failure }

    /// A complete, valid record arrived after the handshake.
    func tookRecord() { if self.progress?.timer != nil { self.succeed() } }

    // MARK: Events of the channel

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if self.isDiagnosing { return }
        guard let progress else { return context.fireUserInboundEventTriggered(event) }
        switch event {
        case TLSUserEvent.handshakeCompleted: self.completed(progress, context)
        case ChannelEvent.inputClosed: self.fail(.tls(.closed), context)
        default: break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if self.isDiagnosing { return }
        let caught = TLSCaught(error, usesPreSharedKey: self.usesPreSharedKey)
        guard let progress else {
            switch caught {
            case .failure(let failure): context.fireErrorCaught(failure)
            case .unverified: context.fireErrorCaught(TLSFailure.otherCertificate("refused"))
            case .endWithoutClose: break
            case .other(let error): context.fireErrorCaught(error)
            }
            return
        }
        switch caught {
        case .failure(.wrongName):
            let names = (try? progress.tls?.peerCertificate?.toDERBytes()).map(TLSCertificateCheck.names) ?? []
            let wanted = progress.layer.context.name(for: progress.target).text
            self.fail(.tls(.wrongName(wanted: wanted, names: names)), context)
        case .failure(let failure): self.fail(.tls(failure), context)
        case .unverified:
            if let failure = progress.checkFailure { return self.fail(.tls(failure), context) }
            self.diagnose(progress, context)
        case .endWithoutClose: self.fail(.tls(.closed), context)
        case .other(let error): self.fail(ConnectError.Reason(error, isBinding: false), context)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.isInactive = true
        guard !self.isDiagnosing else { return }
        self.fail(.tls(.closed), context)
        context.fireChannelInactive()
    }

    // MARK: The end

    private func completed(_ progress: Progress, _ context: ChannelHandlerContext) {
        if let names = progress.layer.foreignNames(progress.tls?.peerCertificate, at: progress.target) {
            let wanted = progress.layer.context.name(for: progress.target).text
            return self.fail(.tls(.wrongName(wanted: wanted, names: names)), context)
        }
        guard progress.wasAskedForCertificate, !progress.layer.context.settings.hasCertificate,
            progress.tls?.tlsVersion == .tlsv13
        else { return self.succeed() }
        progress.reader?.awaitRecord()
        let eventLoop = context.eventLoop.assumeIsolated()
        self.progress?.timer = eventLoop.scheduleTask(in: Self.objectionTime) { self.succeed() }
    }

    /// NIOSSL closes the channel meanwhile; the handler above must get the reason, and not a lost connection.
    private func diagnose(_ progress: Progress, _ context: ChannelHandlerContext) {
        self.isDiagnosing = true
        self.progress = nil
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        progress.layer.diagnose(progress.target, at: context.remoteAddress) { failure in
            let (handshake, context) = bound.value
            handshake.isDiagnosing = false
            progress.done(.failure(.tls(failure)))
            if handshake.isInactive { context.fireChannelInactive() }
        }
    }

    private func succeed() {
        guard let progress = self.finish() else { return }
        progress.done(.success(()))
    }

    private func fail(_ reason: ConnectError.Reason, _ context: ChannelHandlerContext) {
        guard let progress = self.finish() else { return }
        progress.done(.failure(Self.reread(reason, progress)))
    }

    private func finish() -> Progress? {
        guard let progress else { return nil }
        progress.timer?.cancel()
        progress.reader?.handshakeIsOver()
        self.progress = nil
        return progress
    }

    /// A server that gets no requested certificate and ends the connection required one.
    ///
    /// Up to TLS 1.2 this has no alert of its own, and some servers send none.
    private static func reread(_ reason: ConnectError.Reason, _ progress: Progress) -> ConnectError.Reason {
        guard progress.wasAskedForCertificate, !progress.layer.context.settings.hasCertificate else { return reason }
        switch reason {
        case .reset, .tls(.closed), .tls(.handshake), .tls(.clientCertificateRefused):
            return .tls(.clientCertificateRequired)
        default: return reason
        }
    }

    /// The certificate of this client, if each client has its own.
    ///
    /// Reads two small files on the loop.
    fileprivate func answerCertificateRequest() throws(TLSSettingsError) -> NIOSSLContextConfigurationOverride? {
        self.noteCertificateRequest()
        guard let progress = self.progress else { return nil }
        return try progress.layer.context.settings.identity(ofClient: self.client)?.override
    }
}

extension TLSSettings {
    var hasCertificate: Bool { self.certificateFile != nil }
}

/// Keeps the loop's receive buffer reusable; placed before NIOSSL.
///
/// During the handshake NIOSSL may keep a buffer while certificates are checked, so it gets a copy. Later it reads all
/// of a buffer before it returns, so the buffer itself is lent and given back.
final class TLSReader: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let receive: ReceiveBuffer
    private let current: TLSCurrentHandshake
    private var handshake: TLSHandshake?
    /// Bytes of the first record after the handshake, while the client waits for it.
    private var record: [UInt8]?

    init(receive: ReceiveBuffer, current: TLSCurrentHandshake, handshake: TLSHandshake) {
        self.receive = receive
        self.current = current
        self.handshake = handshake
    }

    func awaitRecord() { self.record = [] }

    func handshakeIsOver() {
        self.handshake = nil
        self.record = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = self.unwrapInboundIn(data)
        guard let handshake else {
            context.fireChannelRead(data)
            self.receive.give(back: buffer)
            return
        }
        let copy = ByteBuffer(bytes: buffer.readableBytesView)
        self.receive.give(back: buffer)
        // Read before the call: the bytes that complete the handshake are not a record after it.
        let awaitsRecord = self.record != nil
        self.current.handshake = handshake
        context.fireChannelRead(self.wrapInboundOut(copy))
        self.current.handshake = nil
        if awaitsRecord { self.count(copy, handshake) }
    }

    /// A record header has a type, a version of two bytes and a length of two (RFC 8446 §5.1).
    private func count(_ bytes: ByteBuffer, _ handshake: TLSHandshake) {
        guard var record = self.record else { return }
        record += bytes.readableBytesView
        self.record = record
        if record.count >= 5, record.count >= 5 + Int(record[3]) << 8 + Int(record[4]) { handshake.tookRecord() }
    }
}

/// The handshake running on an event loop: NIOSSL does not say for which client a server requests a certificate.
final class TLSCurrentHandshake {
    var handshake: TLSHandshake?
}

/// The current handshakes of all event loops.
///
/// Its lock is taken when a layer is created, and when a server requests a certificate.
final class TLSCurrentHandshakes: Sendable {
    private let byLoop = Mutex<[ObjectIdentifier: NIOLoopBound<TLSCurrentHandshake>]>([:])

    /// The entry of this loop; must be called on the loop.
    func current(on eventLoop: any EventLoop) -> TLSCurrentHandshake { self.bound(on: eventLoop).value }

    private func bound(on eventLoop: any EventLoop) -> NIOLoopBound<TLSCurrentHandshake> {
        let new = NIOLoopBound(TLSCurrentHandshake(), eventLoop: eventLoop)
        return self.byLoop.withLock { byLoop in
            if let known = byLoop[ObjectIdentifier(eventLoop)] { return known }
            byLoop[ObjectIdentifier(eventLoop)] = new
            return new
        }
    }

    /// Answers a server's request for the client's certificate.
    func answer(_ promise: EventLoopPromise<NIOSSLContextConfigurationOverride>) {
        let handshake = self.current(on: promise.futureResult.eventLoop).handshake
        do throws(TLSSettingsError) {
            promise.succeed(try handshake?.answerCertificateRequest() ?? .noChanges)
        } catch {
            promise.fail(error)
        }
    }
}

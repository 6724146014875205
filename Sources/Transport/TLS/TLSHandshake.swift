import LoopContext
import NIOCore
import NIOSSL
import NIOTLS
import Synchronization

/// Behind NIOSSL: sees one client's handshake to its end, and says it; then reads the errors of the session.
///
/// It stays: what NIOSSL reports later on (an alert, an end without close_notify) reaches the client's handler as a
/// ``TLSFailure`` or not at all.
final class TLSHandshake: ChannelInboundHandler {
    typealias InboundIn = Never

    /// How long a server may take to refuse a client without certificate.
    ///
    /// In TLS 1.3 the client is through before the server has seen that the certificate it asked for is missing. What
    /// the server sends first behind the handshake, a session ticket mostly, tells that it goes on without; one that
    /// sends no tickets has this long to object, and the alert of one that takes longer ends the connection later.
    static let objectionTime = TimeAmount.milliseconds(500)

    /// What is needed until the handshake is over, and given up then.
    private struct Progress {
        let layer: TLSLayer
        let target: Target
        let done: (Result<Void, ConnectError.Reason>) -> Void
        var tls: NIOSSLClientHandler?
        weak var reader: TLSReader?
        /// What the certificate check of ours found.
        var checkFailure: TLSFailure?
        var wasAskedForCertificate = false
        var timer: Scheduled<Void>?
    }

    private var progress: Progress?
    /// The certificates were refused, and why is being found out: nobody is told yet.
    private var isDiagnosing = false
    /// What came meanwhile and is told behind the reason.
    private var isInactive = false
    let client: Int
    private let usesPreSharedKey: Bool

    init(
        layer: TLSLayer,
        client: Int,
        target: Target,
        done: @escaping (Result<Void, ConnectError.Reason>) -> Void
    ) {
        self.client = client
        self.usesPreSharedKey = layer.context.settings.preSharedKey != nil
        self.progress = Progress(layer: layer, target: target, done: done)
    }

    func begins(_ tls: NIOSSLClientHandler, behind reader: TLSReader) {
        self.progress?.tls = tls
        self.progress?.reader = reader
    }

    /// It never began: whoever made it says so.
    func abandon() { self.progress = nil }

    func noteCertificateRequest() { self.progress?.wasAskedForCertificate = true }

    func noteCheck(_ failure: TLSFailure?) { self.progress?.checkFailure = failure }

    /// A record came whole, and nothing was wrong with it.
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

    /// NIOSSL closes the channel meanwhile; whoever is behind shall hear the reason, and not of a connection lost.
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

    /// A server that asks for a certificate, gets none and ends the connection wanted one: up to TLS 1.2 there is no
    /// alert of its own for it, and some servers do not get as far as to send one.
    private static func reread(_ reason: ConnectError.Reason, _ progress: Progress) -> ConnectError.Reason {
        guard progress.wasAskedForCertificate, !progress.layer.context.settings.hasCertificate else { return reason }
        switch reason {
        case .reset, .tls(.closed), .tls(.handshake), .tls(.clientCertificateRefused):
            return .tls(.clientCertificateRequired)
        default: return reason
        }
    }
}

extension TLSSettings {
    var hasCertificate: Bool { self.certificateFile != nil }
}

/// In front of NIOSSL: keeps the loop's receive buffer the loop's.
///
/// During the handshake NIOSSL may keep what it was handed while certificates are checked: it gets a copy. From then on
/// it reads all of it before it returns, so that the buffer itself is lent and given back.
final class TLSReader: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let receive: ReceiveBuffer
    private let current: TLSCurrentHandshake
    private var handshake: TLSHandshake?
    /// Bytes of the first record behind the handshake, while that is waited for.
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
        // Before the read: what completes the handshake is no record behind it.
        let awaitsRecord = self.record != nil
        self.current.handshake = handshake
        context.fireChannelRead(self.wrapInboundOut(copy))
        self.current.handshake = nil
        if awaitsRecord { self.count(copy, handshake) }
    }

    /// A record has a type, a version of two bytes and a length of two (RFC 8446 §5.1).
    private func count(_ bytes: ByteBuffer, _ handshake: TLSHandshake) {
        guard var record = self.record else { return }
        record += bytes.readableBytesView
        self.record = record
        if record.count >= 5, record.count >= 5 + Int(record[3]) << 8 + Int(record[4]) { handshake.tookRecord() }
    }
}

/// The handshake that is at work on an event loop: NIOSSL does not say for whom a server asks for a certificate.
final class TLSCurrentHandshake {
    var handshake: TLSHandshake?
}

/// Those of all event loops.
///
/// Its lock is taken when a layer is made, and when a server asks for a certificate.
final class TLSCurrentHandshakes: Sendable {
    private let byLoop = Mutex<[ObjectIdentifier: NIOLoopBound<TLSCurrentHandshake>]>([:])

    /// The loop's own; on that loop.
    func current(on eventLoop: any EventLoop) -> TLSCurrentHandshake {
        self.bound(on: eventLoop).value
    }

    private func bound(on eventLoop: any EventLoop) -> NIOLoopBound<TLSCurrentHandshake> {
        let new = NIOLoopBound(TLSCurrentHandshake(), eventLoop: eventLoop)
        return self.byLoop.withLock { byLoop in
            if let known = byLoop[ObjectIdentifier(eventLoop)] { return known }
            byLoop[ObjectIdentifier(eventLoop)] = new
            return new
        }
    }

    /// Answers a server that asks for the client's certificate.
    func answer(_ promise: EventLoopPromise<NIOSSLContextConfigurationOverride>) {
        let handshake = self.current(on: promise.futureResult.eventLoop).handshake
        do throws(TLSSettingsError) {
            promise.succeed(try handshake?.answerCertificateRequest() ?? .noChanges)
        } catch {
            promise.fail(error)
        }
    }
}

extension TLSHandshake {
    /// The certificate of this client, where each has its own.
    ///
    /// Reads two small files on the loop.
    fileprivate func answerCertificateRequest() throws(TLSSettingsError) -> NIOSSLContextConfigurationOverride? {
        self.noteCertificateRequest()
        guard let progress = self.progress else { return nil }
        return try progress.layer.context.settings.identity(ofClient: self.client)?.override
    }
}

package import LoopContext
package import NIOCore
import NIOSSL

/// TLS for the clients of one event loop.
///
/// A connect is complete when the server's certificate is trusted and the handshake done. If the server requested a
/// certificate that the client does not have, it is complete when the server accepts that. Sessions are not resumed,
/// because NIOSSL does not support it.
package final class TLSLayer: ConnectLayer {
    package let phase = ConnectError.Phase.tls

    let context: TLSContext
    private let loop: LoopContext
    private let current: TLSCurrentHandshake
    /// The exchange that a server requires before TLS begins.
    private let preamble: TLSPreamble?
    /// DER of the last certificate that was found valid for the XMPP domain: all clients get the same one.
    private var known: [UInt8] = []
    /// The reasons why certificates of a target were refused, found at the first refusal.
    private var diagnoses: [Target: Diagnosis] = [:]

    private enum Diagnosis {
        case underWay(Waiting<TLSFailure>, attempt: Int)
        case known(TLSFailure)
        /// The number of diagnoses that failed.
        case failed(Int)
    }

    /// More attempts do not help: the server may require another protocol before TLS, for example.
    private static let diagnosisAttempts = 3

    /// Creates the layer on the loop, where it stays.
    ///
    /// - Parameters:
    ///   - context: the settings.
    ///   - loop: the shared state of the loop's clients.
    ///   - preamble: the exchange before TLS for connections that only diagnose a refusal; for STARTTLS.
    package init(_ context: TLSContext, loop: LoopContext, preamble: TLSPreamble? = nil) {
        self.context = context
        self.loop = loop
        self.preamble = preamble
        self.current = context.current.current(on: loop.eventLoop)
    }

    /// Creates the layer with its own context; reads files.
    package convenience init(_ settings: TLSSettings, loop: LoopContext) throws(TLSSettingsError) {
        self.init(try TLSContext(settings), loop: loop)
    }

    package func begin(
        _ channel: any Channel,
        client: Int,
        target: Target,
        done: @escaping (Result<Void, ConnectError.Reason>) -> Void
    ) {
        self.begin(channel, client: client, target: target, position: .last, done: done)
    }

    /// Begins TLS on a connection in use: STARTTLS.
    ///
    /// The client's handler calls this when the server has agreed, possibly during a read. It discards the bytes after
    /// the server's answer in that read, writes nothing before `done`, and resets its state. Plain bytes that are not
    /// read yet reach TLS, which fails with a broken record. From `done` on the connection is no longer bare.
    ///
    /// - Parameters:
    ///   - channel: the channel; this is called on its event loop.
    ///   - client: the number of the client, from 0.
    ///   - target: the target of the connection.
    ///   - position: before the client's handler: `.first` or `.before` it.
    ///   - done: called once, on the loop, when the handler's writes are encrypted, or when TLS has failed.
    package func begin(
        _ channel: any Channel,
        client: Int,
        target: Target,
        position: ChannelPipeline.SynchronousOperations.Position,
        done: @escaping (Result<Void, ConnectError.Reason>) -> Void
    ) {
        let handshake = TLSHandshake(layer: self, client: client, target: target, done: done)
        let reader = TLSReader(receive: self.loop.receive, current: self.current, handshake: handshake)
        let pipeline = channel.pipeline.syncOperations
        do {
            let tls = try self.makeHandler(for: target, handshake)
            handshake.begins(tls, behind: reader)
            try pipeline.addHandlers([reader, handshake], position: position)
            // The handshake starts when the handler is added.
            try pipeline.addHandler(tls, position: .after(reader))
        } catch is NIOSSLExtraError {
            handshake.abandon()
            done(.failure(.tls(.handshake("'\(self.context.name(for: target).text)' is no server name"))))
        } catch {
            // The peer has closed the channel in the meantime.
            handshake.abandon()
            done(.failure(.reset))
        }
    }

    private func makeHandler(for target: Target, _ handshake: TLSHandshake) throws -> NIOSSLClientHandler {
        let name = self.context.name(for: target)
        guard let check = self.context.pinCheck else {
            return try NIOSSLClientHandler(context: self.context.native, serverHostname: name.host)
        }
        let bound = NIOLoopBound((handshake, self.current), eventLoop: self.loop.eventLoop)
        return try NIOSSLClientHandler(
            context: self.context.native,
            serverHostname: name.host,
            customVerificationCallback: { chain, promise in
                let presented = chain.compactMap { try? $0.toDERBytes() }
                let eventLoop = promise.futureResult.eventLoop
                Task {
                    let failure = await check.failure(of: presented, for: name)
                    eventLoop.execute {
                        bound.value.0.noteCheck(failure)
                        // NIOSSL continues in a task of its own, between these two tasks that set the current
                        // handshake.
                        eventLoop.execute { bound.value.1.handshake = bound.value.0 }
                        promise.succeed(failure == nil ? .certificateVerified : .failed)
                        eventLoop.execute { bound.value.1.handshake = nil }
                    }
                }
            }
        )
    }

    /// The names of a certificate that the library accepted for a target but that is for other names.
    ///
    /// The library accepts a certificate for the target's address, or one that has the name as its common name alone. A
    /// client that asks for a name must not (RFC 9525 §2, §6.1).
    func foreignNames(_ certificate: NIOSSLCertificate?, at target: Target) -> [String]? {
        guard let certificate, self.context.verifiesNames else { return nil }
        switch self.context.name(for: target) {
        case .address(let address):
            guard self.context.settings.xmppDomain != nil else { return nil }
            guard let der = try? certificate.toDERBytes() else { return [] }
            if der == self.known { return nil }
            let isMet = certificate._subjectAlternativeNames()
                .contains { $0.nameType == .ipAddress && Self.isSame(Array($0.contents), address) }
            guard isMet else { return TLSCertificateCheck.names(der) }
            self.known = der
            return nil
        case .host(let host):
            let alternatives = certificate._subjectAlternativeNames()
            let kinds = Set(alternatives.map(\.nameType))
            guard kinds.contains(.ipAddress) || !kinds.contains(.dnsName) else { return nil }
            let names = alternatives.filter { $0.nameType == .dnsName }
                .map { String(decoding: $0.contents, as: UTF8.self) }
            if names.contains(where: { HostName(host).matches($0) }) { return nil }
            return (try? certificate.toDERBytes()).map(TLSCertificateCheck.names) ?? names
        case .xmpp(let domain):
            guard let der = try? certificate.toDERBytes() else { return [] }
            if der == self.known { return nil }
            guard XMPPIdentity(domain).isMet(by: der) else { return TLSCertificateCheck.names(der) }
            self.known = der
            return nil
        }
    }

    private static func isSame(_ bytes: [UInt8], _ address: String) -> Bool {
        guard let found = try? SocketAddress(packedIPAddress: ByteBuffer(bytes: bytes), port: 0) else { return false }
        return found == (try? SocketAddress(ipAddress: address, port: 0))
    }

    // MARK: Diagnosis

    /// Finds the reason why the library refused the certificates of a target.
    ///
    /// One more handshake checks them step by step. It connects to the address of the refused connection, without the
    /// bytes of layers before TLS.
    func diagnose(_ target: Target, at address: SocketAddress?, then tell: @escaping (TLSFailure) -> Void) {
        switch self.diagnoses[target] {
        case .known(let failure): return tell(failure)
        case .underWay(let waiting, _): return waiting.completions.append(tell)
        case .failed(let attempts): self.diagnoses[target] = .underWay(Waiting(tell), attempt: attempts + 1)
        case nil: self.diagnoses[target] = .underWay(Waiting(tell), attempt: 1)
        }
        guard let address else { return self.settle(target, nil) }
        let bound = NIOLoopBound(self, eventLoop: self.loop.eventLoop)
        let diagnosis = TLSDiagnosis(
            context: self.context,
            target: target,
            eventLoop: self.loop.eventLoop,
            preamble: self.preamble
        )
        diagnosis.run(address).assumeIsolated().whenComplete { result in
            bound.value.settle(target, (try? result.get()) ?? nil)
        }
    }

    private func settle(_ target: Target, _ found: TLSFailure?) {
        guard case .underWay(let waiting, let attempt)? = self.diagnoses[target] else { return }
        let failure = found ?? .otherCertificate("it does not verify")
        let isLast = found != nil || attempt >= Self.diagnosisAttempts
        self.diagnoses[target] = isLast ? .known(failure) : .failed(attempt)
        for tell in waiting.completions { tell(failure) }
    }
}

extension TLSCertificateCheck.ServerName {
    /// The name for SNI, which does not allow addresses.
    var host: String? {
        switch self {
        case .host(let name), .xmpp(let name): name
        case .address: nil
        }
    }
}

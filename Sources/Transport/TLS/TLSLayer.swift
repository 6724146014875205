package import LoopContext
package import NIOCore
import NIOSSL

/// TLS for the clients of one event loop.
///
/// A connect is through when the server's certificate is believed and the handshake done; of a server that asks for a
/// certificate which the client does not have, when it is known to go on without. Sessions are not resumed: NIOSSL
/// has no way to.
package final class TLSLayer: ConnectLayer {
    package let phase = ConnectError.Phase.tls

    let context: TLSContext
    private let loop: LoopContext
    private let current: TLSCurrentHandshake
    /// What a server wants to be told before it begins with TLS.
    private let preamble: TLSPreamble?
    /// DER of the last certificate that was found to be the XMPP domain's: all clients meet the same one.
    private var known: [UInt8] = []
    /// Why the certificates of a target were refused: found out at the first refusal.
    private var diagnoses: [Target: Diagnosis] = [:]

    private enum Diagnosis {
        case underWay(Waiting<TLSFailure>, attempt: Int)
        case known(TLSFailure)
        /// So many connections of a diagnosis came to nothing.
        case failed(Int)
    }

    /// More do not help: something in front of the server wants to be spoken to first, say.
    private static let diagnosisAttempts = 3

    /// On the loop, where it stays.
    ///
    /// - Parameters:
    ///   - context: the settings.
    ///   - loop: what the clients of the loop share.
    ///   - preamble: what a connection that only looks for the reason of a refusal has to say first; for STARTTLS.
    package init(_ context: TLSContext, loop: LoopContext, preamble: TLSPreamble? = nil) {
        self.context = context
        self.loop = loop
        self.preamble = preamble
        self.current = context.current.current(on: loop.eventLoop)
    }

    /// With a context of its own; reads files.
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

    /// Begins on a connection that is in use: STARTTLS.
    ///
    /// The client's handler calls it when the server has agreed, from within its read if it likes. It throws away what
    /// stands behind the server's word in that read, writes nothing before `done`, and forgets what it knew; whatever
    /// came in clear and is not read yet meets TLS, which takes it for a broken record and fails. From `done` on the
    /// connection is not bare any more.
    ///
    /// - Parameters:
    ///   - channel: on its event loop.
    ///   - client: the number of the client, from 0.
    ///   - target: where it is connected to.
    ///   - position: in front of the client's handler, `.first` or `.before` it.
    ///   - done: called once, on the loop, when what the handler writes is encrypted, or when it never will be.
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
            // Begins to shake hands as it is added.
            try pipeline.addHandler(tls, position: .after(reader))
        } catch is NIOSSLExtraError {
            handshake.abandon()
            done(.failure(.tls(.handshake("'\(self.context.name(for: target).text)' is no server name"))))
        } catch {
            // Closed by the peer in the meantime.
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
                        // NIOSSL goes on in a task of its own: between these two, which tell it whose turn it is.
                        eventLoop.execute { bound.value.1.handshake = bound.value.0 }
                        promise.succeed(failure == nil ? .certificateVerified : .failed)
                        eventLoop.execute { bound.value.1.handshake = nil }
                    }
                }
            }
        )
    }

    /// The names of a certificate that the library took for the target's, and that is not.
    ///
    /// It is content with the address that the name led to. Whoever asks for a name wants that (RFC 9525 §6.1).
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
            guard alternatives.contains(where: { $0.nameType == .ipAddress }) else { return nil }
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

    /// Names the reason why the library refused the certificates of a target.
    ///
    /// With one more handshake, in which they are judged step by step. That goes to the address of the refused
    /// connection, without what layers in front of TLS would send.
    func diagnose(
        _ target: Target,
        at address: SocketAddress?,
        then tell: @escaping (TLSFailure) -> Void
    ) {
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
    /// For the handshake: an address has no place in SNI.
    var host: String? {
        switch self {
        case .host(let name), .xmpp(let name): name
        case .address: nil
        }
    }
}

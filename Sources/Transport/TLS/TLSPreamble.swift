import NIOCore
import NIOSSL

/// The plain-text exchange that a server requires before TLS begins.
///
/// For connections that only inspect a server's certificates; clients have a protocol implementation of their own.
package struct TLSPreamble: Sendable {
    struct Step: Sendable {
        let send: [UInt8]
        /// The bytes that end the step.
        let until: [UInt8]
    }

    let steps: [Step]

    /// STARTTLS of XMPP (RFC 6120 §5.4.2).
    package static func xmpp(domain: String) -> TLSPreamble {
        var name = ""
        for character in domain.unicodeScalars {
            switch character {
            case "&": name += "&amp;"
            case "<": name += "&lt;"
            case "'": name += "&apos;"
            default: name.unicodeScalars.append(character)
            }
        }
        let header =
            "<?xml version='1.0'?><stream:stream xmlns='jabber:client' "
            + "xmlns:stream='http://etherx.jabber.org/streams' version='1.0' to='\(name)'>"
        let startTLS = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
        return TLSPreamble(steps: [
            // The server chooses the prefix, so only the end of the name is matched.
            Step(send: Array(header.utf8), until: Array("features>".utf8)),
            Step(send: Array(startTLS.utf8), until: Array("<proceed".utf8)),
            Step(send: [], until: Array(">".utf8)),
        ])
    }
}

/// Runs the preamble, and removes itself when the server has agreed to TLS.
final class TLSPreambleHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The most bytes of answers.
    private static let limit = 65_536

    private var steps: ArraySlice<TLSPreamble.Step>
    private let tls: NIOSSLClientHandler
    private var received: [UInt8] = []

    init(_ preamble: TLSPreamble, _ tls: NIOSSLClientHandler) {
        self.steps = preamble.steps[...]
        self.tls = tls
    }

    func channelActive(context: ChannelHandlerContext) {
        self.send(context)
        context.fireChannelActive()
    }

    private func send(_ context: ChannelHandlerContext) {
        guard let step = self.steps.first, !step.send.isEmpty else { return }
        context.writeAndFlush(self.wrapOutboundOut(ByteBuffer(bytes: step.send)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.received += self.unwrapInboundIn(data).readableBytesView
        guard self.received.count <= Self.limit else { return context.close(promise: nil) }
        while let step = self.steps.first, let end = Self.end(of: step.until, in: self.received) {
            self.received.removeFirst(end)
            self.steps.removeFirst()
            self.send(context)
        }
        guard self.steps.isEmpty else { return }
        let pipeline = context.pipeline.syncOperations
        do {
            try pipeline.addHandler(self.tls, position: .after(self))
            pipeline.removeHandler(self, promise: nil)
        } catch {
            context.close(promise: nil)
        }
    }

    private static func end(of mark: [UInt8], in bytes: [UInt8]) -> Int? {
        guard bytes.count >= mark.count else { return nil }
        let start = (0...(bytes.count - mark.count)).first { bytes[$0..<($0 + mark.count)].elementsEqual(mark) }
        return start.map { $0 + mark.count }
    }
}

import LoopContext
import NIOCore
import SASL
package import Transport
import XMPPCodec

// Events of the wire.
extension XMPPConnection: WireUser {
    package func received(_ bytes: UnsafeRawBufferPointer) {
        // A failing write reads the socket to its end at once: after the connection's end, or during the read that ends
        // it.
        guard self.end == nil, !self.isDecoding else { return }
        let now = self.loop.refresh()
        self.isReading = true
        self.stream.pointee.noteReceived(bytes.count, now: now)
        self.isDecoding = true
        var isInjected = false
        var failure: XMPPReadError?
        self.observer.read(self.client, bytes, atBoundary: self.reader.pointee.isBetweenElements)
        do throws(XMPPReadError) {
            isInjected = try self.read(bytes, now: now)
            // RFC 7395 §3.3.3: each message is read whole, and holds one element whole.
            if self.isWebSocket, self.end == nil { try self.reader.pointee.endMessage() }
        } catch {
            failure = error
        }
        self.isDecoding = false
        if let failure, self.end == nil {
            self.run(self.stream.pointee.malformed(failure, into: &self.out.pointee), now: now)
        } else if isInjected, self.end == nil {
            self.close(.plaintextInjected)
        } else if self.wantsTLS, self.end == nil {
            self.wantsTLS = false
            // The request, of a server that did not wait for it.
            self.flush()
            if self.end == nil { if self.finishesAfterRead { self.finish() } else { self.beginTLS() } }
        } else if self.end == nil {
            self.observer.readEnded(self.client, now: now)
            let hasAnswered = self.wire.hasUnwritten
            if self.flush() > Self.maximumUnsent, hasAnswered, self.end == nil {
                self.close(.violation(.resourceConstraint, "it sends, and does not read the answers"))
            }
            if self.finishesAfterRead { self.finish() }
            // Without modules nothing that is read brings a deadline forward.
            if self.end == nil, self.armed == .distantFuture || self.extras != nil { self.updateTimer() }
        }
        self.isReading = false
    }

    /// - Returns: whether clear-text bytes arrived during or before a handshake. They must not count as encrypted
    ///   (§5.4.3.3), and a correct server sends none.
    private func read(_ bytes: UnsafeRawBufferPointer, now: NIODeadline) throws(XMPPReadError) -> Bool {
        guard self.stream.pointee.state != .startTLS2 else { return Self.saysSomething(bytes) }
        var rest = bytes
        var sink = XMPPStreamSink(connection: self, now: now)
        while true {
            let taken = try self.reader.pointee.read(rest, into: &sink)
            rest = UnsafeRawBufferPointer(rebasing: rest[min(taken, rest.count)...])
            guard self.wantsRestart, self.end == nil else { break }
            self.wantsRestart = false
            self.reader.pointee.restart()
            if rest.isEmpty { break }
        }
        return self.wantsTLS && Self.saysSomething(rest)
    }

    private static func saysSomething(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.contains { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
    }

    /// `<proceed/>` has come.
    private func beginTLS() {
        guard let channel = self.wire.channel else { return }
        self.isSecuring = true
        self.wire.passesLayers = true
        self.observer.needsTLS(self.client, channel: channel, before: self.wire) { result in
            self.isSecuring = false
            guard self.end == nil else { return }
            switch result {
            case .success where self.wire.channel == nil: self.close(self.extras?.gone ?? .lost)
            case .success: self.tlsReady()
            case .failure(.tls(let failure)): self.close(.insecure(failure))
            case .failure(let reason): self.close(.notConnected(reason))
            }
        }
    }

    /// The wire can no longer be used.
    ///
    /// During a TLS handshake the TLS layer knows the cause better and reports it.
    ///
    /// If the TLS layer reports nothing, the deadline passes and reports this end.
    private func wireEnded(_ end: XMPPConnectionEnd) {
        guard self.isSecuring else { return self.close(end) }
        let extras = self.needsExtras
        extras.gone = extras.gone ?? end
    }

    private func tlsReady() {
        self.wire.isBare = false
        self.reader.pointee.restart()
        self.stream.pointee.tlsReady(now: self.loop.refresh(), into: &self.out.pointee)
        self.offerChannelBindings()
        self.flush()
    }

    /// The stream asks when it comes to a login that could use them.
    func offerChannelBindings() {
        guard let channel = self.wire.channel else { return }
        self.stream.pointee.setChannelBindings {
            TLSServerEndPoint.data(of: channel).map { [SASLChannelBinding(.tlsServerEndPoint, $0)] } ?? []
        }
    }

    package func took(_ bytes: Int) { self.observer.wrote(self.client, bytes: bytes) }

    package func becameWritable() {
        guard self.end == nil else { return }
        self.settleReceipts()
        // A full stream waits for the server's acknowledgement.
        guard !self.stream.pointee.isFull else {
            self.awaitsRoom = true
            return
        }
        self.awaitsRoom = false
        self.observer.writable(self.client, now: self.loop.refresh())
    }

    package func ended(_ end: WireEnd) {
        switch end {
        case .finished, .gone: self.wireEnded(.lost)
        case .webSocket(let violation): self.wireEnded(.webSocket(violation.description))
        case .insecure(let failure): self.wireEnded(.insecure(failure))
        case .failed(let number): self.wireEnded(.failed(number))
        }
    }
}

package import LoopContext
package import NIOCore
package import Transport
package import XMPPCodec

/// One XMPP connection: the user of a wire.
///
/// It parses elements in place, runs the stream's actions and owns every write. During a read, answers are collected in
/// the loop's scratch buffer; the owner's stanzas are appended, and all are sent in one write.
package final class XMPPConnection {
    /// The owner's number for the client.
    package let client: Int
    package let wire: Wire
    var loop: LoopContext { self.wire.loop }
    /// Outlives the connection; the owner keeps it in its slab.
    package let stream: UnsafeMutablePointer<XMPPStream>
    let reader: UnsafeMutablePointer<XMPPReader>
    /// Retained by its connections; their wires own them.
    let observer: any XMPPConnectionObserver
    /// State that only some connections need; created on demand.
    var extras: XMPPConnectionExtras?
    /// Set once the connection must not be used any more; the final event follows or has been sent.
    var end: XMPPConnectionEnd?
    var hasEnded = false
    /// The stream is this connection's.
    var hasStarted = false
    var isFinishing = false
    var isReading = false
    var isDecoding = false
    var finishesAfterRead = false
    /// Set during a read; TLS starts after the read.
    var wantsTLS = false
    var wantsRestart = false
    /// The owner is adding TLS.
    var isSecuring = false
    /// The server has to acknowledge stanzas first.
    var awaitsRoom = false
    var isWebSocket = false
    /// The deadline of the call that the owner was last asked for.
    var armed = NIODeadline.distantFuture

    /// `memory` is for what reads cut: of the loop, for all its connections.
    package init(
        client: Int,
        loop: LoopContext,
        stream: UnsafeMutablePointer<XMPPStream>,
        observer: any XMPPConnectionObserver,
        memory: XMPPReaderMemory? = nil
    ) {
        self.client = client
        self.wire = Wire(loop)
        self.stream = stream
        self.observer = observer
        self.isWebSocket = stream.pointee.options.framing == .webSocket
        self.reader = .allocate(capacity: 1)
        self.reader.initialize(
            to: XMPPReader(
                framing: stream.pointee.options.framing,
                limits: stream.pointee.options.limits,
                memory: memory
            )
        )
    }

    deinit {
        self.reader.deinitialize(count: 1)
        self.reader.deallocate()
    }

    // MARK: Coming up

    /// Sends the stream header on a new connection.
    ///
    /// - Parameters:
    ///   - deadline: the time limit of all steps until the stream is ready.
    ///   - isBare: whether no handler is between the wire and the socket (``ConnectedChannel/isBare``).
    ///   - isSecure: whether TLS is below.
    package func start(deadline: NIODeadline, isBare: Bool, isSecure: Bool) {
        self.wire.isBare = isBare
        self.hasStarted = true
        if let waiting = self.stream.pointee.takeWaiting() { self.needsExtras.requests = waiting }
        self.stream.pointee.start(deadline: deadline, isSecure: isSecure, now: self.loop.now, into: &self.out.pointee)
        if isSecure { self.offerChannelBindings() }
        self.flush()
        self.updateTimer()
    }

    // MARK: Calls by the owner

    /// Whether stanzas may be sent, however long they would wait for the kernel.
    var takesStanzas: Bool { self.end == nil && self.stream.pointee.state == .connected }

    /// Whether stanzas that are sent now would go to the kernel at once, and the stream takes them.
    package var isWritable: Bool {
        self.end == nil && !self.isFinishing && self.stream.pointee.takesStanzas && self.wire.isWritable
    }

    /// Appends one stanza to what waits for the next ``flush()``; `fill` writes it whole.
    ///
    /// On a WebSocket it has to declare `xmlns='jabber:client'`.
    /// - Returns: whether the stanza was accepted; `false` before the stream is ready and after its end.
    @discardableResult
    package func append(count: Int = 1, _ fill: (inout ByteBuffer) -> Void) -> Bool {
        guard self.end == nil, self.stream.pointee.state == .connected else { return false }
        let start = self.out.pointee.writerIndex
        fill(&self.out.pointee)
        self.stream.pointee.counts(count, from: start, in: &self.out.pointee)
        return true
    }

    /// The same, and flushes, unless a read is in progress, which flushes at its end.
    ///
    /// `count`: stanzas that `fill` writes. Only one where the stream may be resumed, or on a WebSocket.
    @discardableResult
    package func send(count: Int = 1, _ fill: (inout ByteBuffer) -> Void) -> Bool {
        guard self.append(count: count, fill) else { return false }
        self.flushUnlessReading()
        return true
    }

    /// The fate of an element.
    package enum Offer: Hashable, Sendable {
        case sent
        /// A filter dropped it.
        case dropped
        /// There is no stream that is ready.
        case refused
    }

    /// Sends an element, a stanza or not, by the filters of the handlers if there are any.
    ///
    /// - Returns: whether it was taken, by the stream or by a filter that dropped it.
    @discardableResult
    package func send(_ element: XMPPElement) throws(XMPPWriteError) -> Bool { try self.offer(element) != .refused }

    /// The same.
    ///
    /// `told`: called once for an element that was sent: `true` when the kernel has all of it, `false` when the
    /// connection ends before.
    package func offer(_ element: XMPPElement, told: ((Bool) -> Void)? = nil) throws(XMPPWriteError) -> Offer {
        guard self.takesStanzas else { return .refused }
        let filtered = self.filtered(element)
        // A filter may have ended it.
        guard self.takesStanzas else { return .refused }
        guard let element = filtered else { return .dropped }
        try self.stream.pointee.send(element, into: &self.out.pointee)
        if let told {
            let extras = self.needsExtras
            let receipts = extras.receipts ?? XMPPReceiptsOfSending()
            extras.receipts = receipts
            receipts.add(pending: self.out.pointee.readableBytes, told)
        }
        self.flushUnlessReading()
        return .sent
    }

    /// Asks the server how many stanzas it received.
    ///
    /// ``XMPPConnectionObserver/acknowledged(_:count:now:)`` reports the answer.
    package func requestAcknowledgement() {
        guard self.end == nil else { return }
        self.stream.pointee.requestAcknowledgement(into: &self.out.pointee)
        self.flushUnlessReading()
    }

    /// Leaves: an unavailable presence if one is owed, and the closing tag.
    ///
    /// Input is read until the server's closing tag.
    package func finish() {
        guard self.end == nil, !self.isFinishing else { return }
        if self.isDecoding {
            self.finishesAfterRead = true
            return
        }
        guard self.stream.pointee.finish(now: self.loop.now, into: &self.out.pointee) else {
            return self.close(.aborted)
        }
        self.isFinishing = true
        self.flush()
        self.updateTimer()
    }

    /// Closes at once.
    ///
    /// A session that can be resumed stays.
    package func abort() { self.close(.aborted) }

    // MARK: Time

    package func timerFired(now: NIODeadline) {
        guard self.end == nil, self.hasStarted else { return }
        self.armed = .distantFuture
        let action = self.stream.pointee.timerFired(now: now, into: &self.out.pointee)
        self.flush()
        self.fail(self.stream.pointee.takeExpired(now: now), .timedOut, now: now)
        if case .end(let end) = action { self.close(self.extras?.gone ?? end) }
        guard self.end == nil else { return }
        self.extras?.handlers?.timerFired(now: now)
        self.updateTimer()
    }

    /// A handler may have changed its deadline.
    func watchDeadline() { if self.end == nil, self.hasStarted { self.updateTimer() } }

    /// Asks the owner for a call, unless one comes early enough.
    func updateTimer() {
        var deadline = self.stream.pointee.deadline ?? .distantFuture
        if let handlers = self.extras?.handlers { deadline = min(deadline, handlers.deadline) }
        guard deadline < self.armed else { return }
        self.armed = deadline
        self.observer.wantsTimer(self.client, at: deadline)
    }

    // MARK: Ends

    func close(_ end: XMPPConnectionEnd) {
        guard self.end == nil else { return }
        let end = end.bounded
        self.end = end
        self.wire.dropUnwritten()
        let now = self.loop.refresh()
        self.observer.ending(self.client, unsent: self.wire.countTaken())
        self.settleReceipts()
        self.wire.close()
        // Until it starts, the stream belongs to another connection or to none.
        if self.hasStarted { self.leaveStream(now: now) }
        self.extras?.receipts?.fail()
        self.extras?.handlers?.ended(XMPPClientEnd(end))
        guard !self.hasEnded else { return }
        self.hasEnded = true
        self.observer.ended(self.client, end, now: now)
    }

    /// A resumable stream keeps its pending requests; otherwise they fail.
    private func leaveStream(now: NIODeadline) {
        let isKept = self.stream.pointee.canResume
        let unanswered = isKept ? [] : self.stream.pointee.takeRequests()
        self.stream.pointee.connectionLost(now: now)
        if isKept { self.stream.pointee.keep(self.extras?.requests) }
        // Reports in progress when the owner closed the connection end with it.
        let failing = self.extras?.failing ?? []
        self.extras?.failing = []
        for token in failing.reversed() + unanswered { self.fail(token, .connectionLost, now: now) }
    }
}

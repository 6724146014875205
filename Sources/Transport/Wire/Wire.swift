package import LoopContext
package import NIOCore

/// The protocol that speaks over a ``Wire``; all calls are made on its event loop.
package protocol WireUser: AnyObject {
    var wire: Wire { get }

    /// The wire has one read's bytes, which are valid during the call.
    func received(_ bytes: UnsafeRawBufferPointer)

    /// Writes what it has put into ``Wire/out``: another wire of the loop wants to.
    func flush() -> Int

    /// The kernel has taken this many more bytes.
    func took(_ bytes: Int)

    /// The socket takes writes again, after one that it did not take whole.
    func becameWritable()

    /// Nothing more is read or written; called once, unless the user closes the wire first.
    func ended(_ end: WireEnd)
}

/// The reason why a wire ended.
package enum WireEnd {
    /// The peer's FIN; with `hasAll` the kernel had taken every byte before.
    case finished(hasAll: Bool)
    /// The connection went after this side's FIN, without the peer's: a reset.
    case gone
    /// The system's error number.
    case failed(CInt)
    case insecure(TLSFailure)
    case webSocket(WebSocketViolation)
}

/// One end of a connection: bytes in, bytes out, and the verdict on how it ended.
///
/// The connection is a channel, whose last handler the wire is, or a socket of a ``SocketLoop``. Confined to its event
/// loop.
package final class Wire {
    package let loop: LoopContext
    /// Kept alive from ``WireUser/makeHandler()`` until the end.
    var user: (any WireUser)?
    var context: ChannelHandlerContext?
    /// Stored, because a context makes a reference from its pipeline at each access.
    package internal(set) var channel: (any Channel)?
    /// The channel's socket, for writes past the channel.
    var direct = DirectSocket()
    /// The socket of a ``SocketLoop``, in place of a channel.
    var socket: LoopSocket?
    /// Bytes that the kernel had not taken at the last look.
    private var pendingBytes = 0
    /// Bytes passed on since the connection opened.
    package private(set) var bytesHanded: UInt64 = 0
    /// No layer lies between the user and the socket.
    package var isBare = true
    /// A layer is being added below: writes must go through it.
    package var passesLayers = false
    /// The kernel did not take all of the last write.
    package private(set) var isBlocked = false
    private var isFlushing = false
    /// The user has closed it: it hears nothing more.
    private var isClosed = false
    /// Whether the current turn of reading brought bytes, and whether the last one brought the peer's FIN.
    var hasRead = false
    var sawFIN = false

    package init(_ loop: LoopContext) { self.loop = loop }

    // MARK: The scratch buffer

    /// Where to append; the loop's, shared by all its wires: what another one has left there goes out first.
    package var out: UnsafeMutablePointer<ByteBuffer> {
        if self.loop.scratchOwner !== self { self.claimScratch() }
        return self.loop.scratch
    }

    private func claimScratch() {
        // A flush may fail, and have this or another wire append.
        while let owner = self.loop.scratchOwner as? Wire {
            _ = owner.user?.flush()
            if owner.user == nil || !owner.hasUnwritten { owner.dropUnwritten() }
        }
        self.loop.scratchOwner = self
    }

    /// Whether bytes of this wire wait for a ``flush(isLast:messages:)``.
    package var hasUnwritten: Bool { self.loop.scratchOwner === self && self.loop.scratch.pointee.readableBytes > 0 }

    /// Bytes of this wire that wait for a flush.
    package var unwritten: Int { self.loop.scratchOwner === self ? self.loop.scratch.pointee.readableBytes : 0 }

    /// Drops appended bytes, so that they never reach the peer of another wire.
    package func dropUnwritten() {
        guard self.loop.scratchOwner === self else { return }
        self.loop.scratchOwner = nil
        self.loop.scratch.pointee.clear()
    }

    // MARK: Writing

    /// Whether there is a connection.
    package var isOpen: Bool { self.socket != nil || self.context != nil }

    /// Whether a write would go to the kernel at once.
    package var isWritable: Bool { self.socket.map { $0.held == nil } ?? self.channel?.isWritable ?? false }

    /// Bytes passed on that the kernel has not taken.
    package var unsent: Int {
        if let socket = self.socket { return socket.held?.readableBytes ?? 0 }
        return self.channel?.unsent(of: self.pendingBytes, isBare: self.isBare) ?? 0
    }

    /// Writes what waits in ``out``.
    ///
    /// - Parameters:
    ///   - isLast: whether ``shutOutput()`` follows: the bytes leave with the FIN.
    ///   - messages: where each message of a WebSocket ends, in bytes from the buffer's start.
    /// - Returns: bytes of this wire that the kernel has not taken.
    @discardableResult
    package func flush(isLast: Bool = false, messages: [Int]? = nil) -> Int {
        guard self.isOpen else {
            self.dropUnwritten()
            return 0
        }
        let scratch = self.loop.scratch
        self.loop.scratchOwner = nil
        self.bytesHanded += UInt64(scratch.pointee.readableBytes)
        if self.sendAtOnce(scratch, isLast: isLast) { return 0 }
        self.pendingBytes += scratch.pointee.readableBytes
        if let socket = self.socket {
            socket.hold(scratch.pointee)
            scratch.pointee.clear()
        } else if let context = self.context {
            self.writeThrough(context, messages)
        }
        let unsent = self.countTaken()
        self.isBlocked = unsent > 0
        return unsent
    }

    /// - Returns: whether the kernel took all bytes. The buffer keeps the others.
    private func sendAtOnce(_ bytes: UnsafeMutablePointer<ByteBuffer>, isLast: Bool) -> Bool {
        let taken = bytes.pointee.withUnsafeReadableBytes { bytes in
            if let socket = self.socket { return socket.write(bytes, isLast: isLast) }
            guard self.isBare, !self.passesLayers, let channel = self.channel else { return 0 }
            return self.direct.write(bytes, past: channel, isLast: isLast)
        }
        bytes.pointee.moveReaderIndex(forwardBy: taken)
        if taken > 0 { self.user?.took(taken) }
        guard bytes.pointee.readableBytes == 0 else { return false }
        bytes.pointee.clear()
        return true
    }

    private func writeThrough(_ context: ChannelHandlerContext, _ messages: [Int]?) {
        let scratch = self.loop.scratch
        let out = scratch.pointee
        scratch.pointee = ByteBuffer()
        self.isFlushing = true
        self.direct.channelMayHold = true
        var start = out.readerIndex
        for end in messages ?? [] where end > start {
            if let message = out.getSlice(at: start, length: end - start) {
                context.write(Self.wrapOutboundOut(message), promise: nil)
            }
            start = end
        }
        if messages == nil {
            context.writeAndFlush(Self.wrapOutboundOut(out), promise: nil)
        } else {
            context.flush()
        }
        self.isFlushing = false
        // If the kernel took everything the bytes are the loop's own again, and `clear` keeps their memory. A write that
        // failed may have made others append something.
        guard self.loop.scratchOwner == nil else { return }
        scratch.pointee = consume out
        scratch.pointee.clear()
    }

    /// Reports the bytes that the kernel has taken since the last report.
    ///
    /// - Returns: bytes that it has not taken.
    @discardableResult
    package func countTaken() -> Int {
        let unsent = self.unsent
        if self.pendingBytes > unsent { self.user?.took(self.pendingBytes - unsent) }
        self.pendingBytes = unsent
        return unsent
    }

    /// The channel or the socket takes bytes again.
    ///
    /// Each write makes a channel unwritable, then writable again once the kernel took all. Only a change after a
    /// blocked write counts.
    func tellWritable() {
        guard self.isBlocked, !self.isFlushing, !self.isClosed, let user = self.user, self.isWritable else { return }
        self.isBlocked = false
        self.countTaken()
        user.becameWritable()
    }

    // MARK: The end

    /// Sends FIN behind what waits; bytes of the peer are read until its own FIN.
    package func shutOutput() {
        if let socket = self.socket { socket.shut() } else { self.context?.close(mode: .output, promise: nil) }
    }

    /// Closes at once; ``WireUser/ended(_:)`` is not called any more.
    package func close() {
        self.isClosed = true
        self.dropUnwritten()
        if let socket = self.socket {
            socket.discard()
            self.release()
        } else {
            self.context?.close(promise: nil)
        }
    }

    func end(_ end: WireEnd) { if !self.isClosed { self.user?.ended(end) } }

    /// Lets go of the user, which has had its end.
    func release() {
        self.socket = nil
        self.context = nil
        self.channel = nil
        self.direct.close()
        self.user = nil
    }

    deinit { self.dropUnwritten() }
}

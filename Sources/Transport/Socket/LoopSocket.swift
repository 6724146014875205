import CPosix
import LoopContext
import NIOCore

#if canImport(Glibc)
import Glibc
#endif

/// A TCP socket of a ``SocketLoop``: non-blocking, and read and written straight by its ``Wire``.
///
/// It is registered once, edge-triggered, for reading; for writing too from its first blocked write on.
final class LoopSocket {
    private unowned let loop: SocketLoop
    private let key: UInt64
    private(set) var descriptor: CInt
    /// Told that the connect may have ended; the socket has no wire until then.
    private var connecting: (() -> Void)?
    /// The peer spoke before there was a wire.
    private var hasInput = false
    /// Kept alive by the connection that reads it, until ``discard()``.
    private var wire: Wire?
    /// Bytes that the kernel has not taken.
    private(set) var held: ByteBuffer?
    /// The FIN follows ``held``.
    private var shutsWhenWritten = false
    private var reportsRoom = false
    /// The peer has ended: reading goes on to the end of its bytes.
    private var isAtEnd = false
    /// It is among the sockets that the loop reads in its next turn.
    var isQueued = false
    /// The error of the first write that failed, which the kernel reports once.
    private var failure: CInt = 0

    fileprivate init(_ descriptor: CInt, key: UInt64, on loop: SocketLoop) {
        self.descriptor = descriptor
        self.key = key
        self.loop = loop
    }

    /// Adds a socket to the loop; the socket is closed if the system refuses.
    ///
    /// `connecting`: called when its connect may have ended; without it the socket is connected.
    static func add(
        _ descriptor: CInt,
        to loop: SocketLoop,
        connecting: (() -> Void)? = nil
    ) throws(ConnectError.Reason) -> LoopSocket {
        let socket = loop.add { LoopSocket(descriptor, key: $0, on: loop) }
        guard clamor_set_client_options(descriptor) == 0,
            loop.watch(descriptor, key: socket.key, writes: connecting != nil)
        else {
            let error = errno
            socket.discard()
            throw ConnectError.Reason(IOError(errnoCode: error, reason: "epoll_ctl"), isBinding: false)
        }
        socket.connecting = connecting
        socket.reportsRoom = connecting != nil
        return socket
    }

    /// The socket is connected; the wire reads it, and keeps its user alive.
    func connect(_ wire: Wire) {
        self.connecting = nil
        self.wire = wire
        wire.socket = self
        if self.hasInput { self.loop.readLater(self) }
    }

    /// - Returns: the number of bytes that the kernel has taken.
    func write(_ bytes: UnsafeRawBufferPointer, isLast: Bool) -> Int {
        guard self.held == nil, self.descriptor >= 0 else { return 0 }
        let taken = clamor_send(self.descriptor, bytes.baseAddress, bytes.count, isLast ? 1 : 0)
        if taken < 0 { self.writeFailed(errno) }
        return max(0, taken)
    }

    private func writeFailed(_ error: CInt) {
        guard error != EAGAIN, error != EINTR else { return }
        if self.failure == 0 { self.failure = error }
        // The peer's earlier bytes are read first.
        self.loop.readLater(self)
    }

    /// Keeps bytes that the kernel has not taken; they go when it has room.
    func hold(_ bytes: ByteBuffer) {
        if var held = self.held.take() {
            if held.readerIndex > held.readableBytes { held.discardReadBytes() }
            held.writeImmutableBuffer(bytes)
            self.held = held
        } else {
            self.held = ByteBuffer(bytes: bytes.readableBytesView)
        }
        guard !self.reportsRoom else { return }
        self.reportsRoom = true
        // Changing what is reported tells of room that is there by now.
        _ = self.loop.watch(self.descriptor, key: self.key, writes: true, changes: true)
    }

    private func writeHeld() {
        guard var bytes = self.held.take() else { return }
        bytes.moveReaderIndex(forwardBy: bytes.withUnsafeReadableBytes { self.write($0, isLast: false) })
        if bytes.readableBytes > 0 { return self.held = bytes }
        if self.shutsWhenWritten { self.shut() }
        self.wire?.tellWritable()
    }

    /// Sends FIN behind what is held.
    func shut() {
        self.shutsWhenWritten = true
        guard self.held == nil, self.descriptor >= 0 else { return }
        _ = shutdown(self.descriptor, CInt(SHUT_WR))
    }

    func handle(_ event: clamor_poll_event) {
        if event.ends != 0 { self.isAtEnd = true }
        if let connecting = self.connecting {
            self.hasInput = self.hasInput || event.reads != 0 || event.ends != 0
            return connecting()
        }
        if event.writes != 0, self.held != nil { self.writeHeld() }
        if event.reads != 0 || event.ends != 0 { self.read() }
    }

    /// Reads once, as all sockets with bytes have their turn.
    func read() {
        guard self.descriptor >= 0, let wire = self.wire else { return }
        let memory = wire.loop.receive.raw
        let count = recv(self.descriptor, memory.baseAddress, memory.count, 0)
        if count > 0 {
            // Less than asked for empties the socket.
            if count == memory.count || self.isAtEnd || self.failure != 0 { self.loop.readLater(self) }
            wire.user?.received(UnsafeRawBufferPointer(rebasing: memory[..<count]))
        } else if count == 0 {
            if self.failure != 0, self.failure != EPIPE { wire.end(.failed(self.failure)) } else { wire.endInput() }
        } else {
            switch errno {
            case EINTR: self.loop.readLater(self)
            case EAGAIN: if self.failure != 0 { wire.end(.failed(self.failure)) }
            case let error: wire.end(.failed(error))
            }
        }
    }

    /// The loop ends: so do the connection and what it keeps alive.
    func loopEnded() {
        self.wire?.end(.finished(hasAll: false))
        self.wire?.close()
        self.discard()
    }

    /// Closes the socket; no event follows.
    func discard() {
        guard self.descriptor >= 0 else { return }
        close(self.descriptor)
        self.descriptor = -1
        self.held = nil
        self.connecting = nil
        self.wire = nil
        self.loop.remove(self.key)
    }
}

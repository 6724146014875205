import DequeModule
package import NIOCore

/// The bytes of one direction that have not gone on yet, in order, and when each may go.
///
/// Pure: the time is passed in. Nothing overtakes: what is not held itself waits for what is in front of it.
package struct HeldBytes: Sendable {
    private struct Piece {
        var count: Int
        var since: NIODeadline
        var due: NIODeadline
        /// Chosen by the delay, and not only behind one that was.
        var isHeld: Bool
    }

    /// Memory that an empty one keeps at most.
    private static let kept = 4_096

    private var bytes = ByteBuffer()
    /// Those that are not due yet.
    private var pieces = Deque<Piece>()
    /// Bytes at the front that may go.
    package private(set) var free = 0

    package init() {}

    package var count: Int { self.bytes.readableBytes }
    /// Memory of the bytes, and of the times of their pieces: a piece may have one byte.
    package var memory: Int { self.count + self.pieces.count * MemoryLayout<Piece>.stride }
    package var isEmpty: Bool { self.count == 0 }
    /// When the next ones may go that may not yet.
    package var nextDue: NIODeadline? { self.pieces.first?.due }

    /// Adds a copy of what has come.
    ///
    /// - Parameters:
    ///   - new: the bytes.
    ///   - now: the time.
    ///   - hold: how long they are held; `nil` for no longer than what came before.
    package mutating func append(_ new: UnsafeRawBufferPointer, now: NIODeadline, hold: TimeAmount? = nil) {
        guard !new.isEmpty else { return }
        if self.bytes.writableBytes < new.count, self.bytes.readerIndex >= self.count { self.bytes.discardReadBytes() }
        self.bytes.writeBytes(new)
        if hold == nil, self.pieces.isEmpty {
            self.free += new.count
        } else {
            let due = max(self.pieces.last?.due ?? now, now + (hold ?? .zero))
            self.pieces.append(Piece(count: new.count, since: now, due: due, isHeld: hold != nil))
        }
    }

    /// Frees what is due.
    ///
    /// - Parameters:
    ///   - now: the time.
    ///   - released: called for each piece that was held: for how long it was, and how long beyond its time.
    package mutating func advance(to now: NIODeadline, released: (_ held: TimeAmount, _ late: TimeAmount) -> Void) {
        while let piece = self.pieces.first, piece.due <= now {
            self.pieces.removeFirst()
            self.free += piece.count
            if piece.isHeld { released(now - piece.since, now - piece.due) }
        }
    }

    /// Lends bytes that may go, at most `limit`, and drops as many as `body` says it took.
    ///
    /// - Returns: how many those were.
    package mutating func take(_ limit: Int, by body: (UnsafeRawBufferPointer) -> Int) -> Int {
        let count = min(limit, self.free)
        let taken = self.bytes.withUnsafeReadableBytes { body(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        self.drop(taken)
        return taken
    }

    /// Takes bytes that may go, at most `limit`, as a copy.
    package mutating func copy(_ limit: Int) -> ByteBuffer {
        var copy = ByteBuffer()
        _ = self.take(limit) { copy.writeBytes($0) }
        return copy
    }

    /// Forgets all of them.
    ///
    /// - Returns: how many there were.
    package mutating func removeAll() -> Int {
        let count = self.count
        self.bytes = ByteBuffer()
        self.pieces = []
        self.free = 0
        return count
    }

    private mutating func drop(_ count: Int) {
        self.bytes.moveReaderIndex(forwardBy: count)
        self.free -= count
        guard self.isEmpty else { return }
        if self.bytes.storageCapacity > Self.kept { self.bytes = ByteBuffer() } else { self.bytes.clear() }
    }
}

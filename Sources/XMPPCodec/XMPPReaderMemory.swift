/// Memory that the readers of one thread share for elements that a read has cut.
///
/// In fragmented reads nearly every element is cut. An allocation for each would be slow, and memory kept by each
/// reader would exist for a hundred thousand idle readers too. So a reader returns its memory after an element, and the
/// next reader takes it.
///
/// Pieces have 512 bytes to 64 KiB, in powers of two. Returned pieces are kept up to 256 KiB.
public final class XMPPReaderMemory {
    private static let smallest = 512
    private static let classes = 8
    /// The limit of ``rest``, in bytes.
    package static let largestRest = 262_144

    /// The first free piece of each class; its first word points to the next one.
    private let free: UnsafeMutablePointer<UnsafeMutableRawPointer?>
    /// Unused bytes at the moment.
    package private(set) var rest = 0
    /// Pieces that were allocated, for none was free.
    package private(set) var made = 0

    /// Starts empty, and grows with the readers' needs.
    public init() {
        self.free = .allocate(capacity: Self.classes)
        self.free.initialize(repeating: nil, count: Self.classes)
    }

    deinit {
        for index in 0..<Self.classes {
            while let piece = self.free[index] {
                self.free[index] = piece.load(as: UnsafeMutableRawPointer?.self)
                piece.deallocate()
            }
        }
        self.free.deallocate()
    }

    /// The smallest class whose pieces have this size; `nil` beyond the largest.
    private static func index(_ size: Int) -> Int? {
        let blocks = (max(size, 1) + Self.smallest - 1) / Self.smallest
        let index = Int.bitWidth - (blocks - 1).leadingZeroBitCount
        return index < Self.classes ? index : nil
    }

    /// A piece of `size` bytes at least, and how many it has; nothing where that is more than a piece may have.
    func take(_ size: Int, most: Int) -> (memory: UnsafeMutableRawPointer, room: Int)? {
        guard let index = Self.index(size), Self.smallest << index <= most else { return nil }
        let room = Self.smallest << index
        guard let piece = self.free[index] else {
            self.made += 1
            return (.allocate(byteCount: room, alignment: 16), room)
        }
        self.free[index] = piece.load(as: UnsafeMutableRawPointer?.self)
        self.rest -= room
        return (piece, room)
    }

    /// Takes memory back, be it one of the pieces or not; `room` is its size.
    func give(back memory: UnsafeMutableRawPointer, room: Int) {
        guard let index = Self.index(room), Self.smallest << index == room, self.rest + room <= Self.largestRest else {
            return memory.deallocate()
        }
        memory.storeBytes(of: self.free[index], as: UnsafeMutableRawPointer?.self)
        self.free[index] = memory
        self.rest += room
    }
}

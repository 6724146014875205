/// An error of a message store.
public enum MQTTStoreError: Error, Hashable, Sendable {
    /// The client already has the maximum number of messages in this direction.
    case tooManyMessages(limit: Int)
    /// The messages would exceed the store's byte limit.
    case full(limit: Int)
    /// The store already has a message with this sequence or this packet identifier.
    case duplicate(UInt64)
    /// The properties cannot be encoded in a packet, so they could not be read again.
    case unreadableProperties
    /// The file does not exist or cannot be created, for this reason.
    case cannotOpen(path: String, reason: String)
    /// The file is read-only.
    case readOnly(path: String)
    /// Another process, or another store of this process, has the file open.
    case inUse(path: String)
    /// The file is not a message store.
    case foreign(path: String)
    /// The file was written by a later version.
    case newer(path: String)
    /// The file is damaged.
    case corrupt(path: String, reason: String)
    /// The disk has no room left.
    case diskFull(path: String)
    /// The store was closed.
    case closed
    /// Another database error, in the database's words.
    case failed(path: String, reason: String)
}

extension MQTTStoreError {
    /// Whether the error concerns one message, and a retry fails until other messages are removed.
    package var isRefusal: Bool {
        switch self {
        case .tooManyMessages, .full, .duplicate, .unreadableProperties: true
        default: false
        }
    }
}

extension MQTTStoreError: CustomStringConvertible {
    /// One line.
    public var description: String {
        switch self {
        case .tooManyMessages(let limit): "the store keeps \(limit) messages a client and direction, and has them"
        case .full(let limit): "the store may grow to \(limit) bytes, and has them"
        case .duplicate(let number): "the store has a message numbered \(number) already"
        case .unreadableProperties: "the store takes no properties that a packet cannot carry"
        case .cannotOpen(let path, let reason): "\(path) cannot be opened: \(reason)"
        case .readOnly(let path): "\(path) may not be written"
        case .inUse(let path): "\(path) is in use by another store: one process has it at a time"
        case .foreign(let path): "\(path) is no store of messages, and stays as it is"
        case .newer(let path): "\(path) was written by a later version, and stays as it is"
        case .corrupt(let path, let reason): "\(path) is damaged: \(reason)"
        case .diskFull(let path): "\(path) cannot grow: the disk is full"
        case .closed: "the store is closed"
        case .failed(let path, let reason): "\(path): \(reason)"
        }
    }
}

/// The limits of a store.
public struct MQTTStoreLimits: Hashable, Sendable {
    /// Messages of one client in one direction, at most.
    public var maxMessages: Int
    /// Bytes of all clients together, at most.
    public var maxSize: Int

    /// - Parameters:
    ///   - maxMessages: messages of one client in one direction, at most.
    ///   - maxSize: bytes of all clients together, at most; 64 MiB if not given.
    public init(maxMessages: Int = 1024, maxSize: Int = 64 << 20) {
        precondition(maxMessages > 0 && maxSize > 0, "a store that takes nothing is no store")
        self.maxMessages = maxMessages
        self.maxSize = maxSize
    }
}

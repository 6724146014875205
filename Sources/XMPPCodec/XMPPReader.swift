/// Whether a reader is to read on.
public enum ReadingGoesOn: Hashable, Sendable {
    /// Continue with the next event.
    case goOn
    /// Stop: bytes after this event are not read.
    case stop
}

/// Where a reader puts what it reads.
///
/// Generic, so that every call is direct and what is handed out need not outlive it.
public protocol XMPPReaderSink: ~Copyable {
    /// `<stream:stream ...>`, or `<open/>` over WebSocket.
    mutating func opened(_ header: StreamHeader) -> ReadingGoesOn
    /// A whole element below the root, valid during the call.
    mutating func element(_ element: borrowing ElementView) -> ReadingGoesOn
    /// `</stream:stream>`, or `<close/>` over WebSocket.
    mutating func closed() -> ReadingGoesOn
}

/// Reads one XML stream: takes bytes in any fragmentation, and returns complete elements below the root.
///
/// It accepts only XML's subset of RFC 6120 §11: UTF-8, no comments, processing instructions, document types or
/// entities. Character references longer than the limit of a name are refused too. After an error it accepts no more
/// bytes.
///
/// Memory per client: about 200 bytes. For a cut element it keeps the bytes and the positions of its parts, within
/// ``XMPPLimits``. A header with unusual namespaces takes up to 512 bytes as long as the stream.
///
/// Spec: RFC 6120 §4, §11; RFC 7395 §3.3.
public struct XMPPReader: ~Copyable {
    /// How elements follow each other.
    public enum Framing: Hashable, Sendable {
        /// In a root element whose start tag is the stream header (RFC 6120 §4).
        case stream
        /// Each for itself, with all its namespaces; `<open/>` and `<close/>` are the header and its end (RFC 7395).
        case webSocket
    }

    @usableFromInline
    var tokenizer: Tokenizer

    /// A reader that waits for the start of a stream.
    ///
    /// - Parameters:
    ///   - framing: how elements follow each other.
    ///   - limits: what is refused.
    ///   - memory: for what a read cuts; shared by readers on the same thread. Without it each cut element is an
    ///     allocation or two.
    public init(framing: Framing = .stream, limits: XMPPLimits = XMPPLimits(), memory: XMPPReaderMemory? = nil) {
        self.tokenizer = Tokenizer(limits: limits, isMessages: framing == .webSocket, shared: memory)
    }

    /// Calls `sink` for each event that the bytes complete, in order.
    ///
    /// It stops after an event for which the sink returns `.stop`: bytes in clear after STARTTLS's `<proceed/>` must be
    /// dropped.
    ///
    /// - Parameters:
    ///   - bytes: the bytes read; they and the sink's arguments are valid during the call.
    ///   - sink: called for each event.
    /// - Returns: the number of bytes taken; all of them unless the sink stopped.
    /// - Throws: the first broken rule; events before it have been delivered. Later calls throw it again.
    @inlinable
    public mutating func read<Sink: XMPPReaderSink & ~Copyable>(
        _ bytes: UnsafeRawBufferPointer,
        into sink: inout Sink
    ) throws(XMPPReadError) -> Int {
        if let error = self.tokenizer.error { throw error }
        guard let base = bytes.baseAddress, bytes.count > 0 else { return 0 }
        // The tokens are on the stack; only an element in one piece needs them.
        let taken = withUnsafeTemporaryAllocation(of: Token.self, capacity: Tokenizer.scratchTokens) { scratch in
            scratch.baseAddress.map { self.walk(base, bytes.count, $0, into: &sink) } ?? 0
        }
        if let error = self.tokenizer.error { throw error }
        return taken
    }

    @inlinable
    mutating func walk<Sink: XMPPReaderSink & ~Copyable>(
        _ base: UnsafeRawPointer,
        _ count: Int,
        _ scratch: UnsafeMutablePointer<Token>,
        into sink: inout Sink
    ) -> Int {
        var offset = 0
        while true {
            let wish: ReadingGoesOn
            switch self.tokenizer.next(base, count, &offset, scratch) {
            case .nothing, .failed: return offset
            case .element: wish = sink.element(ElementView(self.tokenizer.currentSpace))
            case .opened: wish = sink.opened(StreamHeader(ElementView(self.tokenizer.currentSpace)))
            case .closed: wish = sink.closed()
            }
            self.tokenizer.dropElement()
            if wish == .stop { return offset }
        }
    }

    /// Waits for a new stream header, as after TLS and after SASL; what is not whole yet is forgotten, and so is an error.
    public mutating func restart() { self.tokenizer.restart() }

    /// Whether all bytes so far were whole: no element, header or tag is cut.
    public var isBetweenElements: Bool { self.tokenizer.carry.count == 0 }

    /// Over WebSocket, after the last byte of a message: an element must not continue in the next message.
    public mutating func endMessage() throws(XMPPReadError) {
        guard self.isBetweenElements else {
            _ = self.tokenizer.fail(.incompleteMessage)
            throw .incompleteMessage
        }
    }

    /// Bytes currently allocated, in addition to the reader's own size.
    package var ownedBytes: Int { self.tokenizer.ownedBytes }
}

/// The attributes of a stream header or of `<open/>`.
///
/// Spec: RFC 6120 §4.7, RFC 7395 §3.4.
public struct StreamHeader: Hashable, Sendable {
    /// The server's domain, in an answer.
    public var from: String?
    /// The addressee.
    public var to: String?
    /// New for each stream, also after a restart.
    public var id: String?
    /// `1.0`; absent in what came before RFC 3920.
    public var version: String?
    /// The default language of the stream's elements.
    public var language: String?
    /// The namespace of stanzas without a prefix; that of `<open/>` itself over WebSocket.
    public var defaultNamespace: String

    /// The header's values as they are.
    public init(
        from: String? = nil,
        to: String? = nil,
        id: String? = nil,
        version: String? = nil,
        language: String? = nil,
        defaultNamespace: String = XMPPNamespace.client
    ) {
        self.from = from
        self.to = to
        self.id = id
        self.version = version
        self.language = language
        self.defaultNamespace = defaultNamespace
    }

    @usableFromInline
    init(_ element: borrowing ElementView) {
        self.from = element.attribute("from")
        self.to = element.attribute("to")
        self.id = element.attribute("id")
        self.version = element.attribute("version")
        self.language = element.language
        self.defaultNamespace = element.declaredDefault ?? ""
    }

    /// The major version; `nil` if there is no version, or one that RFC 6120 §4.7.5 does not define.
    public var majorVersion: Int? {
        guard let version = self.version else { return nil }
        let parts = version.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { $0 &- 0x30 < 10 } }) else {
            return nil
        }
        return Int(parts[0])
    }
}

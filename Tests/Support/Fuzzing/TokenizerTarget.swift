import CFuzzing
import NIOCore
import XMPPCodec
import XMPPErrorNames

/// The reader of XMPP streams in every framing and fragmentation.
///
/// The first byte of the settings chooses where the bytes begin (behind a header, at the start of a stream, over
/// WebSocket), the second the cuts, the third the limits, the fourth after how many events the sink has had enough.
package final class TokenizerTarget: FuzzTarget {
    package static var layout: FuzzInput.Layout { .xml }
    package private(set) var reached = Reached()
    package private(set) var signature: UInt64 = 0

    private let memory = GuardedMemory()
    private var written = ByteBuffer()
    /// As the connections of a loop share it.
    private let shared = XMPPReaderMemory()

    private static let header = Array(
        "<stream:stream id='1' xmlns:stream='http://etherx.jabber.org/streams' xmlns='jabber:client'>".utf8
    )
    private static let limits = [
        XMPPLimits(), XMPPLimits(), XMPPLimits(depth: 2), XMPPLimits(attributes: 2), XMPPLimits(nameBytes: 16),
        XMPPLimits(stanzaBytes: 256), XMPPLimits(stanzaBytes: 256, depth: 3, attributes: 3, nameBytes: 16),
        XMPPLimits(stanzaBytes: 512, depth: 8),
    ]

    package init() {}

    private struct Settings {
        let place: Int
        let cuts: UInt8
        let limits: XMPPLimits
        let sinkLimit: Int

        init(_ input: UnsafeRawBufferPointer) {
            self.place = Int(input[0]) % 4
            self.cuts = input[1]
            self.limits = TokenizerTarget.limits[Int(input[2]) % TokenizerTarget.limits.count]
            self.sinkLimit = input[3] < 16 ? Int(input[3]) + 1 : .max
        }

        func reader(_ memory: XMPPReaderMemory? = nil) -> XMPPReader {
            var reader = XMPPReader(
                framing: self.place == 3 ? .webSocket : .stream,
                limits: self.limits,
                memory: memory
            )
            guard self.place < 2 else { return reader }
            var log = EventLog()
            _ = TokenizerTarget.header.withUnsafeBytes { try? reader.read($0, into: &log) }
            return reader
        }
    }

    package func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
        self.reached.inputs += 1
        guard input.count > FuzzInput.settingsCount else { return }
        let settings = Settings(input)
        let stream = UnsafeRawBufferPointer(rebasing: input[FuzzInput.settingsCount...])

        var first = settings.reader()
        let whole = try self.walk(stream, &first, pieces: nil, settings)
        var second = settings.reader(self.shared)
        let cut = try self.walk(stream, &second, pieces: Pieces(stream, seed: settings.cuts), settings)

        try Finding.unless(
            whole.error == cut.error,
            "whole: \(String(describing: whole.error)), cut: \(String(describing: cut.error))"
        )
        try Finding.unless(whole.log.events == cut.log.events, "other events when cut")
        try Finding.unless(whole.taken == cut.taken || whole.error != nil, "other bytes taken when cut")
        let (isWhole, isCutWhole) = (first.isBetweenElements, second.isBetweenElements)
        if whole.error == nil { try Finding.unless(isWhole == isCutWhole, "another place when cut") }
        if let error = whole.error {
            var log = EventLog()
            var again: XMPPReadError?
            do throws(XMPPReadError) { _ = try self.memory.read(stream, with: &first, into: &log) } catch {
                again = error
            }
            try Finding.unless(again == error && log.events.isEmpty, "goes on after an error")
        }
        try self.checkWriting(whole.log)
        self.note(whole)
    }

    private struct Result {
        var log = EventLog()
        var error: XMPPReadError?
        var taken = 0
    }

    private func walk(
        _ stream: UnsafeRawBufferPointer,
        _ reader: inout XMPPReader,
        pieces: Pieces?,
        _ settings: Settings
    ) throws(Finding) -> Result {
        var result = Result()
        result.log.limit = settings.sinkLimit
        var pieces = pieces
        var isDone = false
        while !isDone, let piece = pieces == nil ? stream : pieces?.next() {
            var taken = 0
            do throws(XMPPReadError) {
                taken = try self.memory.read(piece, with: &reader, into: &result.log)
            } catch {
                result.error = error
                return result
            }
            result.taken += taken
            isDone = pieces == nil || result.log.events.count >= settings.sinkLimit
            try Finding.unless(taken == piece.count || isDone, "\(taken) of \(piece.count) bytes were taken")
            let owned = reader.ownedBytes
            let limit = settings.limits.stanzaBytes
            // The carry doubles, and so does the memory of tokens, of which two need five bytes at least.
            let bound = 512 + min(max(512, 2 * stream.count), limit + 1) + 32 * max(64, min(stream.count, limit))
            try Finding.unless(owned <= bound, "\(owned) bytes are kept, \(bound) allowed")
            if reader.isBetweenElements, !isDone { try Finding.unless(owned <= 512, "\(owned) bytes are kept idle") }
        }
        return result
    }

    /// Bytes of all namespaces, were each declared where it stands.
    private static func namespaceBytes(_ root: XMPPElement) -> Int {
        var rest = [root]
        var bytes = 0
        while let element = rest.popLast() {
            bytes += element.attributes.reduce(element.namespace.utf8.count) { $0 + $1.namespace.utf8.count }
            rest += element.elements
        }
        return bytes
    }

    /// An element that was read is written as text that reads the same.
    private func checkWriting(_ log: EventLog) throws(Finding) {
        for case .element(let element) in log.events {
            self.written.clear()
            do throws(XMPPWriteError) {
                try element.write(into: &self.written, parent: "")
            } catch {
                if case .namespaces(let limit) = error, Self.namespaceBytes(element) > limit { continue }
                throw Finding("\(element) was read and is not written: \(error)")
            }
            // Prefixes for the namespaces of attributes take room that the limits may not have.
            var reader = XMPPReader(framing: .webSocket, limits: XMPPLimits(stanzaBytes: 1 << 24, attributes: 4_096))
            var again = EventLog()
            again.limit = 1
            let problem = self.written.withUnsafeReadableBytes { bytes -> XMPPReadError? in
                do throws(XMPPReadError) {
                    _ = try reader.read(bytes, into: &again)
                    return nil
                } catch {
                    return error
                }
            }
            try Finding.unless(
                problem == nil,
                "\(element) is written as what is refused: \(String(describing: problem))"
            )
            // `<open/>` and `<close/>` would be the stream's own.
            if element.namespace == XMPPNamespace.framing { continue }
            try Finding.unless(again.events == [.element(element)], "\(element) is written as \(again.events)")
        }
    }

    private func note(_ result: Result) {
        var kinds: UInt64 = 0
        for event in result.log.events {
            switch event {
            case .opened: self.reached.note("opened")
            case .closed: self.reached.note("closed")
            case .element(let element):
                self.reached.note("elements")
                kinds |= 1 << UInt64(min(element.children.count, 3) + 4 * min(element.attributes.count, 3))
            }
        }
        if !result.log.events.isEmpty { self.reached.withPacket += 1 }
        var name = "none"
        if let error = result.error {
            name = error.name
            self.reached.note("refused: " + name)
        }
        let hash = name.utf8.reduce(UInt64(5_381)) { ($0 &* 33) ^ UInt64($1) }
        self.signature = kinds << 40 | (hash & 0xFFFF_FFFF) << 8 | UInt64(min(result.log.events.count, 7))
    }

    /// Errors that no input had.
    package static func errorsMissing(in reached: Reached) -> [String] {
        let all = [
            "stanzaTooLarge", "tooDeep", "tooManyAttributes", "tooManyNamespaces", "nameTooLong", "namespaceTooLong",
            "comment", "processingInstruction", "documentType", "entityReference", "encoding", "notUTF8",
            "illegalCharacter",
            "illegalReference", "reference", "declaration", "misplacedDeclaration", "name", "tag", "lessThanInValue",
            "endTag", "endOfSectionInText", "markup", "duplicateAttribute", "unboundPrefix", "namespaceDeclaration",
            "textInStream", "outsideStream", "rootName", "rootNamespace",
        ]
        return all.filter { reached.events["refused: " + $0] == nil }
    }
}

/// Keeps events as objects.
struct EventLog: XMPPReaderSink {
    enum Event: Equatable {
        case opened(StreamHeader)
        case element(XMPPElement)
        case closed
    }

    var events: [Event] = []
    var limit = Int.max

    mutating func opened(_ header: StreamHeader) -> ReadingGoesOn { self.add(.opened(header)) }
    mutating func element(_ element: borrowing ElementView) -> ReadingGoesOn { self.add(.element(element.element())) }
    mutating func closed() -> ReadingGoesOn { self.add(.closed) }

    private mutating func add(_ event: Event) -> ReadingGoesOn {
        self.events.append(event)
        return self.events.count < self.limit ? .goOn : .stop
    }
}

extension GuardedMemory {
    func read(
        _ bytes: UnsafeRawBufferPointer,
        with reader: inout XMPPReader,
        into log: inout EventLog
    ) throws(XMPPReadError) -> Int {
        try reader.read(self.place(bytes), into: &log)
    }
}

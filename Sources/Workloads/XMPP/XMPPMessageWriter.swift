import Ledger
import Measurement
import NIOCore
import Transport

/// Encodes a client's messages or presences directly into the memory of the write.
///
/// The first one of a write is built. The others are copies with a new number, sequence number and due time. One per
/// event loop.
struct XMPPMessageWriter: ~Copyable {
    /// Hexadecimal digits of a message's number in its id, after the letter `m`.
    static let digits = 8

    private let load: XMPPLoad
    private let head: [UInt8]
    /// The addresses of all the loop's clients as attribute text, one after another, with their end offsets.
    private var addresses: [UInt8] = []
    private var ends: [Int32] = [0]
    private var body: [UInt8] = []
    /// Sizes of bodies without a template; ``body`` is then as long as the longest one.
    private let sizes: ClosedRange<Int>
    private var raw: [UInt8] = []
    private var values = PlaceholderValues(clientNumber: 0)
    private var bodyOffset = 0
    /// The place of `%{ledger}` in the body; 0 in a generated one.
    private var headerPlace = 0
    /// The ledger's header.
    private let header: UnsafeMutableRawPointer
    /// Bytes of the current message.
    private(set) var size = 0

    private static let hex: StaticString = "0123456789abcdef"
    /// Markup between id and address; empty without an address.
    private let address: [UInt8]
    private let tail: [UInt8]
    private let end: [UInt8]
    /// RFC 6121 §4.7.2.1: both have four letters, so one can replace the other in place.
    private static let shows: StaticString = "chataway"

    init(_ load: XMPPLoad) {
        self.load = load
        self.header = .allocate(byteCount: PayloadHeader.size, alignment: 8)
        self.header.initializeMemory(as: UInt8.self, repeating: 0, count: PayloadHeader.size)
        // RFC 7395 §3.3.3: each message is a document of its own.
        let namespace = load.layers.contains(.webSocket) ? " xmlns='jabber:client'" : ""
        let form = load.stanzaForm
        self.head = Array("<\(form.start.replacing("%n", with: namespace)) id='m".utf8)
        self.address = form.hasAddress ? Array("' to='".utf8) : []
        self.tail = Array("'>\(form.tail)".utf8)
        self.end = Array(form.end.utf8)
        self.sizes = load.payload.sizes
        self.body = (0..<load.payload.sizes.upperBound).map { UInt8(ascii: "a") + UInt8(truncatingIfNeeded: $0 % 26) }
    }

    deinit { self.header.deallocate() }

    /// Adds the peer address of the loop's next client.
    mutating func addAddress(_ text: String) {
        Self.escape(text.utf8, into: &self.addresses)
        self.ends.append(Int32(self.addresses.count))
    }

    /// Whether all messages of a client are equal except for the patched fields.
    var isUniform: Bool {
        if case .message(let template) = self.load.payload { return !template.variesPerMessage }
        return self.sizes.count == 1
    }

    /// Bytes of the current message's body.
    private(set) var payloadSize = 0

    /// Selects a client and returns the size of its next message.
    mutating func begin(_ place: Int, number: Int, message: UInt64, now: Int64) -> Int {
        self.values.clientNumber = self.load.firstNumber + number
        if self.load.hasLedger {
            PayloadHeader.write(
                to: self.header,
                run: self.load.run,
                publisher: self.load.ledgerID(number),
                flags: 0,
                sequence: 0,
                due: 0
            )
        }
        return self.render(place, message: message, now: now)
    }

    /// Renders the parts that vary per message and returns its size; only if messages are not uniform.
    mutating func render(_ place: Int, message: UInt64, now: Int64) -> Int {
        var random = SplitMix64(seed: self.load.seed, client: self.values.clientNumber, message: message)
        if case .message(let template) = self.load.payload {
            self.values.messageNumber = message
            self.values.nanoseconds = now
            self.raw.removeAll(keepingCapacity: true)
            self.body.removeAll(keepingCapacity: true)
            let place = template.render(self.values, random: &random, into: &self.raw) ?? 0
            Self.escape(self.raw[..<place], into: &self.body)
            self.headerPlace = self.body.count
            Self.escape(self.raw[place...], into: &self.body)
            self.payloadSize = self.body.count
        } else {
            self.payloadSize = self.sizes.count > 1 ? .random(in: self.sizes, using: &random) : self.sizes.lowerBound
        }
        let address = Int(self.ends[place + 1] - self.ends[place])
        self.bodyOffset = self.head.count + Self.digits + self.address.count + address + self.tail.count
        self.size = self.bodyOffset + self.payloadSize + self.end.count
        return self.size
    }

    /// Writes one whole message; `delay` is the time from due to this write, in microseconds.
    func write(_ place: Int, sequence: UInt64, due: NIODeadline, delay: UInt32, to memory: UnsafeMutableRawPointer) {
        var offset = 0
        func add(_ bytes: ArraySlice<UInt8>) {
            bytes.withUnsafeBytes { bytes in
                guard let base = bytes.baseAddress, !bytes.isEmpty else { return }
                (memory + offset).copyMemory(from: base, byteCount: bytes.count)
            }
            offset += bytes.count
        }
        add(self.head[...])
        offset += Self.digits
        add(self.address[...])
        add(self.addresses[Int(self.ends[place])..<Int(self.ends[place + 1])])
        add(self.tail[...])
        add(self.body[..<self.payloadSize])
        add(self.end[...])
        if self.load.hasLedger { XMPPBody.encode(self.header, to: memory + self.bodyOffset + self.headerPlace) }
        self.patch(sequence: sequence, due: due, delay: delay, at: memory)
    }

    /// Writes a message that copies the one at `model`.
    func copy(
        _ model: UnsafeRawPointer,
        sequence: UInt64,
        due: NIODeadline,
        delay: UInt32,
        to memory: UnsafeMutableRawPointer
    ) {
        memory.copyMemory(from: model, byteCount: self.size)
        self.patch(sequence: sequence, due: due, delay: delay, at: memory)
    }

    private func patch(sequence: UInt64, due: NIODeadline, delay: UInt32, at memory: UnsafeMutableRawPointer) {
        let hex = Self.hex.utf8Start
        var number = UInt32(truncatingIfNeeded: sequence)
        var offset = self.head.count + Self.digits
        for _ in 0..<Self.digits {
            offset -= 1
            memory.storeBytes(of: hex[Int(number & 15)], toByteOffset: offset, as: UInt8.self)
            number >>= 4
        }
        if self.load.work == .presence {
            let show = Self.shows.utf8Start + Int(truncatingIfNeeded: sequence & 1) * 4
            let place = self.bodyOffset - self.tail.count + XMPPLoad.showOffset
            (memory + place).copyMemory(from: show, byteCount: 4)
        }
        guard self.load.hasLedger else { return }
        let realtime = Int64(due.uptimeNanoseconds) &+ self.load.realtimeOffset
        XMPPBody.setDelay(delay, in: self.header)
        PayloadHeader.patch(sequence: sequence, due: realtime, at: self.header)
        XMPPBody.patch(self.header, to: memory + self.bodyOffset + self.headerPlace)
    }

    /// The lower 32 bits of a message's sequence number, from its id; `nil` for any other id.
    static func number(ofID id: UnsafeRawBufferPointer) -> UInt32? {
        guard id.count == 1 + Self.digits, id[0] == UInt8(ascii: "m") else { return nil }
        var number: UInt32 = 0
        for byte in id.dropFirst() {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): number = number << 4 | UInt32(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): number = number << 4 | UInt32(byte - UInt8(ascii: "a") + 10)
            default: return nil
            }
        }
        return number
    }

    /// Escapes text, also for attributes in single quotation marks (XML 1.0 §2.4).
    static func escape(_ text: some Sequence<UInt8>, into bytes: inout [UInt8]) {
        for byte in text {
            switch byte {
            case UInt8(ascii: "&"): bytes += Array("&amp;".utf8)
            case UInt8(ascii: "<"): bytes += Array("&lt;".utf8)
            case UInt8(ascii: ">"): bytes += Array("&gt;".utf8)
            case UInt8(ascii: "'"): bytes += Array("&apos;".utf8)
            default: bytes.append(byte)
            }
        }
    }
}

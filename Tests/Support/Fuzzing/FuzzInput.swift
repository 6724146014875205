/// The input of a target: four bytes of settings, then steps.
///
/// The bytes after the settings are one stream for the decoder. For the other targets they are steps of two bytes. If
/// the first byte's top bit is clear, the step is a read on one of four connections: the second byte is its length, and
/// its bytes follow. Otherwise the step is a call, with the second byte as its argument. A conversation has one
/// connection, so the connection's bits in the first byte extend the length. Any bytes are a valid input.
package struct FuzzInput {
    package enum Layout: Sendable {
        case stream
        /// A stream too, of XML.
        case xml
        case program
        /// Steps too, in which much XML is read.
        case conversation
        /// The text of a file.
        case text
    }

    enum Step {
        case feed(connection: UInt8, [UInt8])
        case call(UInt8, UInt8)
    }

    static let settingsCount = 4

    var settings: [UInt8]
    var steps: [Step]

    init(settings: [UInt8], steps: [Step]) {
        self.settings = settings
        self.steps = steps
    }

    init(_ bytes: [UInt8], _ layout: Layout) {
        self.settings = Array(bytes.prefix(Self.settingsCount))
        while self.settings.count < Self.settingsCount { self.settings.append(0) }
        let rest = bytes.dropFirst(Self.settingsCount)
        self.steps = []
        switch layout {
        case .stream, .xml, .text: self.steps = [.feed(connection: 0, Array(rest))]
        case .program, .conversation:
            rest.withUnsafeBytes { rest in
                var walk = ProgramWalk(rest, isWide: layout == .conversation)
                while let step = walk.next() {
                    switch step {
                    case .feed(let connection, let bytes):
                        self.steps.append(.feed(connection: UInt8(connection), Array(bytes)))
                    case .call(let code, let argument): self.steps.append(.call(code, argument))
                    }
                }
            }
        }
    }

    func bytes(_ layout: Layout) -> [UInt8] {
        var bytes = self.settings
        for step in self.steps {
            switch (step, layout) {
            case (.feed(_, let stream), .stream), (.feed(_, let stream), .xml), (.feed(_, let stream), .text):
                bytes += stream
            case (.call, .stream), (.call, .xml), (.call, .text): continue
            case (.feed(let connection, let stream), .program):
                var start = 0
                repeat {
                    let end = min(start + 255, stream.count)
                    bytes.append(connection & 0x7F)
                    bytes.append(UInt8(end - start))
                    bytes += stream[start..<end]
                    start = end
                } while start < stream.count
            case (.feed(_, let stream), .conversation):
                let count = min(stream.count, 0x7FFF)
                bytes.append(UInt8(count >> 8))
                bytes.append(UInt8(count & 0xFF))
                bytes += stream[..<count]
            case (.call(let code, let argument), .program), (.call(let code, let argument), .conversation):
                bytes.append(code | 0x80)
                bytes.append(argument)
            }
        }
        return bytes
    }
}

/// Walks over the steps of an input where they lie.
struct ProgramWalk {
    enum Step {
        case feed(connection: Int, UnsafeRawBufferPointer)
        case call(UInt8, argument: UInt8)
    }

    private let bytes: UnsafeRawBufferPointer
    private let isWide: Bool
    private var offset = 0

    init(_ bytes: UnsafeRawBufferPointer, isWide: Bool = false) {
        self.bytes = bytes
        self.isWide = isWide
    }

    mutating func next() -> Step? {
        guard self.offset + 1 < self.bytes.count else { return nil }
        let first = self.bytes[self.offset]
        let second = self.bytes[self.offset + 1]
        self.offset += 2
        if first & 0x80 != 0 { return .call(first & 0x7F, argument: second) }
        let count = self.isWide ? Int(first) << 8 | Int(second) : Int(second)
        let end = min(self.offset + count, self.bytes.count)
        defer { self.offset = end }
        let connection = self.isWide ? 0 : Int(first & 3)
        return .feed(connection: connection, UnsafeRawBufferPointer(rebasing: self.bytes[self.offset..<end]))
    }
}

/// A rule that did not hold.
package struct Finding: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }

    static func unless(_ condition: Bool, _ words: @autoclosure () -> String) throws(Finding) {
        if !condition { throw Finding(words()) }
    }
}

/// Code under test, with the rules it must keep whatever it is fed.
package protocol FuzzTarget: AnyObject {
    static var layout: FuzzInput.Layout { get }
    /// The states reached so far: shows whether inputs get deep.
    var reached: Reached { get }
    /// A short form of the states that this input reached; an input with a new value is kept.
    var signature: UInt64 { get }

    /// - Throws: the first rule that does not hold.
    func run(_ input: UnsafeRawBufferPointer) throws(Finding)
}

extension FuzzTarget {
    /// The same for an array.
    package func run(_ input: [UInt8]) throws(Finding) {
        try input.withBytes { bytes throws(Finding) in try self.run(bytes) }
    }
}

extension [UInt8] {
    /// `withUnsafeBytes` with a typed error.
    func withBytes(_ body: (UnsafeRawBufferPointer) throws(Finding) -> Void) throws(Finding) {
        let finding = self.withUnsafeBytes { bytes -> Finding? in
            do throws(Finding) {
                try body(bytes)
                return nil
            } catch {
                return error
            }
        }
        if let finding { throw finding }
    }
}

/// The same numbers from the same seed (SplitMix64), without the detours of the standard library's ranges.
package struct Dice {
    private var state: UInt64

    package init(seed: UInt64) { self.state = seed }

    package mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = self.state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    /// 0 up to `count` - 1; 0 for an empty range.
    mutating func below(_ count: Int) -> Int {
        count <= 1 ? 0 : Int(self.next().multipliedFullWidth(by: UInt64(count)).high)
    }

    mutating func byte() -> UInt8 { UInt8(truncatingIfNeeded: self.next() >> 32) }
}

package import Measurement

/// How a stream reaches the decoder.
package enum DecodeForm: String, CaseIterable, Hashable, Sendable {
    /// Contiguous, 64 KiB per read: the server is ahead of its client.
    case pipelined
    /// 1,460 bytes per read: one TCP segment of an Ethernet frame.
    case segments
    /// 1 to 7 bytes per read, drawn from the seed.
    case fragments
    /// Every packet or stanza cut exactly once; the cut moves through it.
    case cuts

    /// End offset of each piece of the stream.
    package func pieces(of stream: DecodeStream, seed: UInt64) -> [Int32] {
        switch self {
        case .pipelined: self.even(65_536, stream)
        case .segments: self.even(1_460, stream)
        case .fragments: self.fragments(stream, seed: seed)
        case .cuts: self.cuts(stream)
        }
    }

    private func even(_ size: Int, _ stream: DecodeStream) -> [Int32] {
        stride(from: size, to: stream.bytes.count, by: size).map { Int32($0) } + [Int32(stream.bytes.count)]
    }

    private func fragments(_ stream: DecodeStream, seed: UInt64) -> [Int32] {
        var random = SplitMix64(seed: seed)
        var pieces: [Int32] = []
        pieces.reserveCapacity(stream.bytes.count / 4)
        var end = 0
        while end < stream.bytes.count {
            end = min(end + Int.random(in: 1...7, using: &random), stream.bytes.count)
            pieces.append(Int32(end))
        }
        return pieces
    }

    private func cuts(_ stream: DecodeStream) -> [Int32] {
        var start: Int32 = 0
        var pieces: [Int32] = []
        pieces.reserveCapacity(stream.ends.count + 1)
        for (number, end) in stream.ends.enumerated() {
            // A packet has at least two bytes.
            pieces.append(start + 1 + Int32(number % Int(end - start - 1)))
            start = end
        }
        return pieces + [start]
    }
}

/// The source of the decoder's bytes.
package enum DecodePath: String, CaseIterable, Hashable, Sendable {
    case memory
    /// A loopback connection, read through the clients' receive path.
    case socket
}

/// One form on one path: the unit of measurement.
package struct DecodeLane: Hashable, Sendable {
    package let form: DecodeForm
    package let path: DecodePath
    /// `mqtt` or `xmpp`.
    package let protocolName: String

    package init(_ form: DecodeForm, _ path: DecodePath, of protocolName: String = "mqtt") {
        self.form = form
        self.path = path
        self.protocolName = protocolName
    }

    /// The phase of the timeline in which the lane is measured.
    package var name: String { "\(self.path.rawValue)-\(self.form.rawValue)" }

    package var labels: Labels {
        ["protocol": self.protocolName, "form": self.form.rawValue, "path": self.path.rawValue]
    }
}

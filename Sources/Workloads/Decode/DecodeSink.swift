/// Adds up the values that a decoder delivers.
///
/// A sink belongs to one decoder, which it gets as a pointer. The pass over a stream is thus one function that the
/// compiler specialises for each sink.
protocol DecodeSink {
    /// A pointer to the heap, as a connection's decoder has; access to a field of a class is slower.
    associatedtype Decoder
    associatedtype Failure: Error

    init()
    var checksum: DecodeChecksum { get }
    /// Passes a piece of the stream to the decoder, with this sink.
    mutating func take(_ bytes: UnsafeRawBufferPointer, _ decoder: Decoder) throws(Failure)
}

/// The use that a sink makes of each payload or text.
protocol PayloadUse {
    init()
    mutating func take(_ bytes: UnsafeRawBufferPointer)
}

/// Needs no more than the size, which the sink counts.
struct PayloadSize: PayloadUse {
    func take(_ bytes: UnsafeRawBufferPointer) {}
}

/// Copies each payload, as an application does that keeps its messages: one allocation per payload.
struct PayloadCopy: PayloadUse {
    /// The last payload, kept so that the copy is not optimised away.
    private var kept: [UInt8] = []

    init() {}

    mutating func take(_ bytes: UnsafeRawBufferPointer) { self.kept = Array(bytes) }
}

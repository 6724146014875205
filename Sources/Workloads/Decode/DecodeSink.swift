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

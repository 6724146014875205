/// Adds up what a decoder delivers.
///
/// Each is of one decoder, which it is handed by its place: so the walk over a stream is one function, and made for each
/// sink apart by the compiler.
protocol DecodeSink {
    /// A place on the heap, as a connection's decoder has: a field of a class is slower to get at.
    associatedtype Decoder
    associatedtype Failure: Error

    init()
    var checksum: DecodeChecksum { get }
    /// Hands a piece of the stream to the decoder, with itself as the sink.
    mutating func take(_ bytes: UnsafeRawBufferPointer, _ decoder: Decoder) throws(Failure)
}

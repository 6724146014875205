/// Passes a stream to a decoder piece by piece, as reads of a socket would.
enum DecodeWalk {
    /// - Parameters:
    ///   - bytes: the whole stream.
    ///   - cuts: end offset of each piece, ascending; the last one is the end of the stream.
    ///   - decoder: the decoder, which continues from its current state.
    ///   - sink: receives the decoded content.
    /// - Throws: the first protocol violation.
    @inline(always)
    static func walk<Sink: DecodeSink>(
        _ bytes: UnsafeRawBufferPointer,
        cuts: UnsafeBufferPointer<Int32>,
        decoder: Sink.Decoder,
        into sink: inout Sink
    ) throws(Sink.Failure) {
        guard let base = bytes.baseAddress else { return }
        var from = 0
        for cut in cuts {
            let end = Int(cut)
            try sink.take(UnsafeRawBufferPointer(start: base + from, count: end - from), decoder)
            from = end
        }
    }
}

/// Hands a stream to a decoder in the pieces that it was cut into, as reads of a socket would.
enum DecodeWalk {
    /// - Parameters:
    ///   - bytes: the whole stream.
    ///   - cuts: where each piece ends, ascending; the last one is the end of the stream.
    ///   - decoder: goes on where it stands.
    ///   - sink: gets what is in it.
    /// - Throws: the first broken rule.
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

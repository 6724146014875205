package import Measurement

extension Summary {
    /// The result of `clamor decode`: rate, cost, and the form of the input.
    var decoderBenchmark: [String] {
        let (one, many) = self.decodedWords
        var speed = TextTable(["Decoder", "\(many)/s", "GB/s", "ns/\(one)", "min", "max", "on the wall", "allocated"])
        var reads = TextTable(["Reads", many, "bytes", "reads", "\(many)/read", "reads/\(one)"])
        for packets in self.record.decodeLanes {
            let labels = packets.labels
            let title = [labels["path"], labels["form"]].compactMap(\.self).joined(separator: " ")
            let bytes = self.record.metric("decode_bytes", labels)?.counter
            let time = self.record.metric("decode_packet_time", labels)?.gauge
            let wall = self.record.metric("decode_thousand_duration", labels)?.duration?.p50
            let allocated = self.record.metric("decode_packet_allocated_bytes", labels)?.gauge?.value
            let count = packets.counter?.value
            let readCount = self.record.metric("reads", labels)?.counter?.value
            func nanoseconds(_ seconds: Double?) -> String? { seconds.map { Human.fixed($0 * 1e9, digits: 2) } }
            speed.add([
                title, Cell.number(packets.counter?.rate.map { $0.rounded() }),
                bytes?.rate.map { Human.fixed($0 / 1e9, digits: 3) },
                nanoseconds(time?.median), nanoseconds(time?.min), nanoseconds(time?.max),
                nanoseconds(wall.map { $0 / 1_000 }),
                allocated.map { "\(Human.fixed($0, digits: 2)) B" },
            ])
            reads.add([
                title, Cell.number(count), bytes.map { Human.bytes($0.value) },
                Cell.number(readCount), Cell.number(ratio(count, readCount)), Cell.number(ratio(readCount, count)),
            ])
        }
        return self.section(speed) + self.decoderRemarks + [""] + self.section(reads)
    }

    /// The decoder's output in this protocol, singular and plural.
    private var decodedWords: (String, String) {
        let isXMPP = self.record.metrics(named: "decode_packets").contains { $0.labels["protocol"] == "xmpp" }
        return isXMPP ? ("stanza", "stanzas") : ("packet", "packets")
    }

    private var decoderRemarks: [String] {
        var remarks = [
            "ns/\(self.decodedWords.0): CPU time of the decoding thread, median of the rounds; over a socket with reading. Each row is "
                + "relative to its own time."
        ]
        if self.record.metrics(named: "decode_packet_allocated_bytes").isEmpty,
            let state = self.record.verdict?.state, state != .aborted
        {
            remarks.append(
                "Bytes allocated per \(self.decodedWords.0) are not known: install libjemalloc2, which counts them."
            )
        }
        return remarks.flatMap { self.paragraph($0, indent: 2) }
    }
}

extension RunRecord {
    /// The lanes of a decoder benchmark, in the order of the design, not of the alphabet.
    package var decodeLanes: [Metric] {
        let paths = ["memory", "socket"]
        let forms = ["pipelined", "segments", "fragments", "cuts"]
        func place(_ metric: Metric) -> (Int, Int) {
            (
                paths.firstIndex(of: metric.labels["path"] ?? "") ?? paths.count,
                forms.firstIndex(of: metric.labels["form"] ?? "") ?? forms.count
            )
        }
        return self.metrics(named: "decode_packets").sorted { place($0) < place($1) }
    }
}

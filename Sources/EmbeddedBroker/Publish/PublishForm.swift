import NIOCore

/// Converts a PUBLISH that the broker has encoded to the form of another version.
enum PublishForm {
    /// Removes the properties, or adds empty ones.
    static func convert(
        _ header: MessageQueue.Header,
        _ bytes: ByteBuffer,
        fromVersion5: Bool
    ) -> (MessageQueue.Header, ByteBuffer) {
        bytes.withUnsafeReadableBytes { packet in
            let topicStart = 1 + self.lengthBytes(packet, at: 1) + 2
            let topicEnd = Int(header.packetIDOffset)
            var payloadStart = topicEnd + 2
            if fromVersion5 {
                let (length, count) = self.length(packet, at: payloadStart)
                payloadStart += count + length
            }
            let view = MessageView(
                topic: UnsafeRawBufferPointer(rebasing: packet[topicStart..<topicEnd]),
                payload: UnsafeRawBufferPointer(rebasing: packet[payloadStart...]),
                properties: UnsafeRawBufferPointer(start: nil, count: 0),
                qos: header.tally.qos,
                retain: packet[0] & 1 != 0
            )
            let writer = PublishWriter(view, version5: !fromVersion5, qos: header.qos, retain: view.retain)
            var converted = header
            converted.count = UInt32(writer.count)
            converted.packetIDOffset = UInt32(writer.packetIDOffset)
            converted.expiryOffset = 0
            var result = ByteBuffer()
            result.writeWithUnsafeMutableBytes(minimumWritableBytes: writer.count) { memory in
                if let base = memory.baseAddress { writer.write(to: base, packetID: 0) }
                return writer.count
            }
            return (converted, result)
        }
    }

    /// A variable byte integer and its size in bytes.
    private static func length(_ bytes: UnsafeRawBufferPointer, at start: Int) -> (value: Int, count: Int) {
        var value = 0
        var count = 0
        while count < 4, start + count < bytes.count {
            let byte = bytes[start + count]
            value |= Int(byte & 0x7F) << (7 * count)
            count += 1
            if byte & 0x80 == 0 { break }
        }
        return (value, count)
    }

    private static func lengthBytes(_ bytes: UnsafeRawBufferPointer, at start: Int) -> Int {
        self.length(bytes, at: start).count
    }
}

import Ledger
import LoopContext
import MQTT
import MQTTCodec
import Measurement
import NIOCore

// Requests and their answers (MQTT 5.0 §4.10).
extension MQTTShardWork {
    /// Bytes of the correlation data: the request's sequence number.
    static var correlationBytes: Int { 8 }

    /// Sends a request's payload back to its response topic, at QoS 0, with its correlation data.
    func answer(_ place: Int, _ view: PublishView) {
        guard let connection = self.clients[place].connection else { return }
        guard let request = view.request else {
            return self.meter.error("no request", at: Int64(self.context.now.uptimeNanoseconds)) {
                "a message came to a responder that names no response topic"
            }
        }
        let correlation = request.correlation?.count ?? -1
        // [MQTT-3.3.2-15]: the property length, then identifier, length and data.
        let inner = correlation < 0 ? 0 : 3 + correlation
        let lengthBytes = inner < 128 ? 1 : inner < 16_384 ? 2 : 3
        let frame = PublishFrame(
            topic: request.responseTopic.count,
            payload: view.payload.count,
            qos: .atMostOnce,
            version: .v5,
            properties: lengthBytes + inner
        )
        connection.append(frame.count) { memory in
            guard let base = memory.baseAddress else { return 0 }
            frame.write(dup: false, retain: false, topic: request.responseTopic, id: 0, to: base)
            var end = base + frame.propertiesOffset
            var rest = inner
            for index in 1...lengthBytes {
                end.storeBytes(of: UInt8(rest & 0x7F) | (index < lengthBytes ? 0x80 : 0), as: UInt8.self)
                rest >>= 7
                end += 1
            }
            if let data = request.correlation {
                end.storeBytes(of: PropertyID.correlationData.rawValue, as: UInt8.self)
                end.storeBytes(of: UInt16(data.count).bigEndian, toByteOffset: 1, as: UInt16.self)
                if let bytes = data.baseAddress { (end + 3).copyMemory(from: bytes, byteCount: data.count) }
            }
            if let bytes = view.payload.baseAddress {
                (base + frame.payloadOffset).copyMemory(from: bytes, byteCount: view.payload.count)
            }
            return frame.count
        }
        // The answer shares a write with everything else that this read causes.
        self.meter.add(self.metrics.traffic.payloadSent, UInt64(view.payload.count))
        if let id = self.metrics.answers { self.meter.add(id) }
    }

    /// Whether the answer's correlation data belongs to the request whose payload it carries.
    func isAnswer(_ view: PublishView) -> Bool {
        if let data = view.correlation, data.count == Self.correlationBytes,
            let header = PayloadHeader.read(view.payload),
            UInt64(bigEndian: data.loadUnaligned(as: UInt64.self)) == header.sequence
        {
            return true
        }
        self.meter.error("correlation", at: Int64(self.context.now.uptimeNanoseconds)) {
            "an answer came whose correlation data is not that of its request"
        }
        return false
    }
}

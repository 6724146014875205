import LoadEngine
import Measurement
import NIOCore
import Report
import RunResult

extension GroupResult {
    /// A row per client, for `clients.csv`.
    func rows(_ outcome: RunOutcome, _ record: RunRecord) -> [ClientRow] {
        let record = record.part(self.name)
        let decodeTime = record.metrics.first { $0.name == "decode_time" }?.counter?.value
        let bytes = record.metrics.first { $0.name == "decode_bytes" }?.counter?.value
        return self.account.clients.map { client in
            var decodeSeconds: Double?
            if let decodeTime, let bytes, bytes > 0 { decodeSeconds = decodeTime * Double(client.tally.bytes) / bytes }
            var row = ClientRow(
                id: self.clientID(client.number),
                qos: client.qos,
                tally: client.tally,
                publishes: client.sends,
                acknowledged: client.acknowledged,
                subscribes: client.receives,
                seconds: outcome.loadBegan.map { Double((outcome.ended - $0).nanoseconds) / 1e9 },
                decodeSeconds: decodeSeconds
            )
            row.group = self.name
            return row
        }
    }
}

import Foundation
import Measurement
import Report

// The loads. Both programs send the same packets: MQTT 3.1.1, topics of about 20 bytes, payloads of 64.

let topic = "limits/load/topic/"

/// A run of a program that prints its figures.
struct ClientRun {
    let figures: [String: Double]
    let ending: Child.Ending
    let counts: SinkCounts?

    /// A figure that has to be there: a missing one is no 0.
    func figure(_ name: String) throws -> Double {
        guard let value = self.figures[name] else { throw Mismatch("no \(name): \(self.ending.lastLine)") }
        return value
    }
}

/// A run of `clamor`.
struct ClamorRun {
    let record: RunRecord
    let ending: Child.Ending
    let counts: SinkCounts?
}

extension Laboratory {
    /// Runs a client that prints one line of JSON, and returns its numbers.
    func client(_ command: [String], server: Server?) throws -> ClientRun {
        let (ending, counts) = try self.bill(command, server: server)
        return ClientRun(figures: try Self.numbers(ending), ending: ending, counts: counts)
    }

    func figures(_ command: [String]) throws -> [String: Double] {
        let result = try self.client(command, server: nil)
        if let messages = result.figures["messages"] { self.billed(messages: UInt64(messages)) }
        return result.figures
    }

    static func numbers(_ ending: Child.Ending) throws -> [String: Double] {
        guard let object = try JSONSerialization.jsonObject(with: Data(ending.lastLine.utf8)) as? [String: Any] else {
            throw Mismatch("no object: \(ending.lastLine)")
        }
        return object.compactMapValues { ($0 as? NSNumber)?.doubleValue }
    }

    /// Runs `clamor` and reads its `run.json`; a run that is not to be believed is refused.
    func clamorRun(_ arguments: [String], server: Server?) throws -> ClamorRun {
        let out = "\(self.directory)/\(self.unique("run"))"
        let command = [self.clamor] + arguments + ["--quiet", "--out", out]
        let (ending, counts) = try self.bill(command, server: server)
        let record = try RunJSON.read(directory: out)
        try? FileManager.default.removeItem(atPath: out)
        if let verdict = record.verdict, verdict.state >= .unreconciled {
            throw Mismatch("\(command.joined(separator: " ")): \(verdict.state.rawValue)")
        }
        if let error = record.errors.first { throw Mismatch("\(command.joined(separator: " ")): \(error.example)") }
        return ClamorRun(record: record, ending: ending, counts: counts)
    }
}

extension RunRecord {
    func percentile(_ name: String, _ read: (DurationReading) -> Double) throws -> Double {
        guard let reading = self.metrics.first(where: { $0.name == name })?.duration else {
            throw Mismatch("run.json has no \(name)")
        }
        return read(reading) * 1e6
    }
}

/// Refuses a run whose counts differ: a figure per message needs the right number of messages.
func agree(_ what: String, _ counts: [(String, UInt64)]) throws {
    guard let first = counts.first, counts.contains(where: { $0.1 != first.1 }) || first.1 == 0 else { return }
    throw Mismatch("\(what): " + counts.map { "\($0.0) \($0.1)" }.joined(separator: ", "))
}

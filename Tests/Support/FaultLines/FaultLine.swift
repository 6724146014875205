package import EmbeddedBroker
import FaultInjection
import NIOCore

/// Why a line of faults is wrong: the fault, and what is said of it.
package struct FaultLineError: Error, Hashable, CustomStringConvertible {
    package let name: String
    let problem: String

    package var description: String { "\(self.name): \(self.problem)" }
}

extension FaultPlan {
    package static let names = [
        "drop", "duplicate", "reorder", "delay", "delay-every", "stall", "disconnect-every", "max-rate", "retry-storm",
        "spin", "fragment", "refuse",
    ]

    /// Parses one line of names and values, separated by spaces: `drop 0.1% delay 5ms`.
    ///
    /// - Throws: `FaultLineError` for the first fault that is unknown, or has a missing or invalid value.
    package static func parse(line: String) throws(FaultLineError) -> FaultPlan {
        var plan = FaultPlan()
        var words = line.split(whereSeparator: \.isWhitespace).map(String.init)[...]
        while let name = words.popFirst() {
            guard Self.names.contains(name) else { throw FaultLineError(name: name, problem: "is no fault") }
            guard let value = words.popFirst() else { throw FaultLineError(name: name, problem: "needs a value") }
            do throws(FaultTextError) {
                try plan.set(name, value)
            } catch {
                throw FaultLineError(name: name, problem: error.description)
            }
        }
        return plan
    }

    private mutating func set(_ name: String, _ value: String) throws(FaultTextError) {
        switch name {
        case "drop": self.dropPerBillion = try FaultForm<UInt64>.share.read(value)
        case "duplicate": self.duplicateEvery = try FaultForm<UInt64>.every.read(value)
        case "reorder": self.reorderEvery = try FaultForm<UInt64>.every.read(value)
        case "delay": self.delay = try FaultForm<TimeAmount>.span.read(value)
        case "delay-every": self.delayEvery = try FaultForm<UInt64>.every.read(value)
        case "stall": self.stall = try FaultForm<FaultStall>.stall.read(value)
        case "disconnect-every": self.disconnectEvery = try FaultForm<TimeAmount>.span.read(value)
        case "max-rate": self.maximumRate = try FaultForm<Double>.rate.read(value)
        case "retry-storm": self.retryStorm = try FaultForm<UInt64>.every.read(value)
        case "spin": self.spin = try FaultForm<UInt64>.every.read(value)
        case "fragment": self.fragment = try FaultForm<ClosedRange<Int>>.fragment.read(value)
        default: self.refuse = try FaultForm<UInt8>.connectRefusal.read(value)
        }
    }
}

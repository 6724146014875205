import FaultInjection
import FaultProxy
import NIOCore
import Transport

extension OptionReader {
    mutating func read(_ command: ProxyCommand, into options: inout ProxyOptions) {
        options.target = self.target(command.target) ?? options.target
        options.host = command.host ?? options.host
        options.port = self.number(command.port, "-p", "--port", in: 0...65_535) ?? options.port
        options.quiet = command.quiet
        self.read(command.faults, into: &options.faults)
    }

    /// Reads `host:port` or `[::1]:port`: what listens on no port of its own has no usual one to add.
    private mutating func target(_ text: String) -> Target? {
        let colon = text.lastIndex(of: ":") ?? text.endIndex
        var host = text[..<colon]
        let port = Int(text[colon...].dropFirst()) ?? 0
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        if isBracketed { host = host.dropFirst().dropLast() }
        let isHost = !host.isEmpty && !host.contains { $0.isWhitespace || "/[]@".contains($0) }
        guard isHost, isBracketed || !host.contains(":"), (1...65_535).contains(port) else {
            self.report(
                "HOST:PORT",
                "'\(text)' is not a server and its port; write it like 127.0.0.1:1883 or [::1]:5222"
            )
            return nil
        }
        return Target(host: String(host), port: port)
    }

    private mutating func read(_ flags: ProxyFaultFlags, into faults: inout ProxyFaults) {
        faults.delay = self.value(flags.delay, "--delay", parse: Self.delay)
        faults.delayEvery = self.value(flags.delayEvery, "--delay-every", parse: FaultText.every) ?? faults.delayEvery
        faults.rate = self.value(flags.rate, "--rate", parse: FaultText.bytesPerSecond)
        faults.stall = self.value(flags.stall, "--stall") { text throws(QuantityError) in
            let stall = try FaultText.stall(text)
            return FaultStall(length: .nanoseconds(stall.length), after: .nanoseconds(stall.after))
        }
        faults.cutEvery = self.value(flags.cut, "--cut", parse: FaultText.span).map { .nanoseconds($0) }
        faults.resetEvery = self.value(flags.reset, "--reset", parse: FaultText.span).map { .nanoseconds($0) }
        faults.fragment = self.value(flags.fragment, "--fragment", parse: FaultText.fragment)
        if flags.delayEvery != nil, flags.delay == nil {
            self.report("--delay-every", "says which reads are delayed, not how long; add --delay")
        }
    }

    private static func delay(_ text: String) throws(QuantityError) -> FaultDelay {
        if text.hasSuffix("%") {
            let number = text.dropLast()
            let isPlain = number.allSatisfy { $0.isASCII && ($0.isNumber || $0 == ".") }
            if isPlain, let percent = Double(number), percent > 0, percent <= 10_000 { return .share(percent / 100) }
        } else if let span = try? FaultText.span(text) {
            return .time(.nanoseconds(span))
        }
        throw QuantityError("'\(text)' is no delay; write it like 20ms or 15%")
    }
}

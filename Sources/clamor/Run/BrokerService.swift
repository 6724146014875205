import EmbeddedBroker
import Foundation

/// `clamor broker`: serves until a signal, or until its parent is gone; then says what it counted.
struct BrokerService {
    private let options: BrokerOptions
    private let screen: ProgressScreen

    init(_ options: BrokerOptions) {
        self.options = options
        self.screen = ProgressScreen(quiet: options.quiet, json: false)
    }

    func perform() async -> ExitStatus {
        Descriptors.raiseLimit()
        let configuration: BrokerConfiguration
        do throws(FaultPlanError) {
            let faults = try FaultPlan.parse(arguments: self.options.faults)
            configuration = BrokerConfiguration(host: self.options.host, port: self.options.port, faults: faults)
        } catch {
            self.screen.warn("\(error)")
            return .usage
        }
        let server: BrokerServer
        do {
            server = try await BrokerServer.start(configuration)
        } catch {
            self.screen.warn("cannot listen on \(self.options.host):\(self.options.port): \(error)")
            return .usage
        }
        self.screen.write("listening on \(self.options.host):\(server.port)\n")
        if self.options.isChild {
            await self.obey(server)
            _ = await server.stop()
        } else {
            for await _ in Signals.stream() { break }
            self.print(await server.stop())
        }
        return .success
    }

    /// A child answers `counters` with one line, and ends when its standard input does.
    private func obey(_ server: BrokerServer) async {
        let lines = AsyncStream<String> { continuation in
            Thread.detachNewThread {
                while let line = readLine() { continuation.yield(line) }
                continuation.finish()
            }
        }
        for await line in lines where line == "counters" { self.print(await server.counters()) }
    }

    private func print(_ counters: BrokerCounters) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = self.options.isChild ? [.sortedKeys] : [.sortedKeys, .prettyPrinted]
        guard !self.options.quiet || self.options.isChild, let text = try? encoder.encode(counters) else { return }
        self.screen.write(String(decoding: text, as: UTF8.self) + "\n")
    }
}

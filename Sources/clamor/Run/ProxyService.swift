import FaultProxy
import Transport
import RunResult

/// `clamor proxy`: serves until a signal, then prints its counters.
struct ProxyService {
    private let options: ProxyOptions
    private let screen: ProgressScreen

    init(_ options: ProxyOptions) {
        self.options = options
        self.screen = ProgressScreen(quiet: options.quiet, json: false)
    }

    func perform() async -> ExitStatus {
        Descriptors.raiseLimit()
        let screen = self.screen
        var configuration = ProxyConfiguration(target: self.options.target)
        configuration.host = self.options.host
        configuration.port = self.options.port
        configuration.faults = self.options.faults
        configuration.maximumClients = Descriptors.proxyClients
        configuration.maximumClientsRemedy = " with two descriptors each; raise ulimit -n"
        configuration.notice = { screen.warn($0) }
        let server: ProxyServer
        do {
            server = try await ProxyServer.start(configuration)
        } catch {
            screen.warn("\(error)")
            return .usage
        }
        screen.write("listening on \(self.options.host):\(server.port)\n")
        for await _ in Signals.stream() { break }
        let counters = await server.stop()
        if !self.options.quiet { screen.write(counters: counters) }
        return .success
    }
}

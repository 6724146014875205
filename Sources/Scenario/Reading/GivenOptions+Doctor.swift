extension GivenOptions {
    /// `file`: a scenario, whose load takes the place of the flags.
    package mutating func doctor(_ file: String?) -> Invocation {
        guard let file else { return .doctor(self.doctor()) }
        let words: OptionWords = "\(file) has the load; change it there, or leave it out"
        self.refuse(given: \.host, \.port, \.count, \.doctorSubscribers, \.sourceAddresses, \.rate, because: words)
        let source = ScenarioSource(file: file, set: self[\.variables] ?? [], target: self[\.target])
        switch self.read(source) {
        case .wrong(let lines): return .wrong(lines)
        case .scenario(var scenario):
            scenario.common.threads = self[\.threads]
            var options = DoctorOptions()
            options.scenario = scenario
            options.hosts = self[\.hosts]
            self.readOutput(into: &options)
            return .doctor(options)
        case nil: return .text("")
        }
    }

    private mutating func doctor() -> DoctorOptions {
        var options = DoctorOptions()
        self.readConnection(into: &options.load)
        options.load.subscribers = self[\.doctorSubscribers] ?? 0
        if !self.isGiven(\.count) { options.load.publishers = 0 }
        if self.isGiven(\.count) || self.isGiven(\.doctorSubscribers) {
            options.clients = options.load.publishers + options.load.subscribers
        }
        if let rate = self[\.rate] { options.load.pacing = .rate(rate) }
        let words: OptionWords = "is about a scenario; give its FILE, or leave it out"
        self.refuse(given: \.hosts, \.variables, \.target, because: words)
        self.readOutput(into: &options)
        return options
    }
}

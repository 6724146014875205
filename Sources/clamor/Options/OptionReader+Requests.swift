import MQTTCodec
import Workloads

extension OptionReader {
    /// What requests need (MQTT 5.0 §4.10), and where their answers go.
    mutating func checkRequests(_ options: inout MQTTOptions) {
        guard options.topology == .request else { return }
        if options.protocolLevel < 5 {
            self.report("--topology", "requests are of MQTT 5, and MQTT 3 has no response topic; use -V 5")
        }
        if options.qualities.contains(0) {
            self.report(
                self.isGiven(["-q", "--qos"]) ? self.typed(["-q", "--qos"]) : "--topology",
                "a request is known to have come when it is acknowledged; write -q 1 or -q 2"
            )
        }
        if !options.hasLedger {
            self.report(
                self.isGiven(["-m", "--message"])
                    ? self.typed(["-m", "--message"]) : self.typed(["-s", "--size", "--payload-size"]),
                "requests carry the header that their answers are known by; leave -m out, and -s at 32 or more"
            )
        }
        if options.store != nil { self.report("--store", "keeps no answers; leave it out, or use another --topology") }
        if options.retain {
            self.report(self.typed(["-r", "--retain"]), "a retained request would be answered again; leave it out")
        }
        if options.publishProperties.correlationData != nil {
            self.report("--correlation-data", "requests are numbered by it; leave it out")
        }
        guard let topic = options.responseTopic else {
            options.responseTopic = "clamor-answers/%c"
            return
        }
        if ["%s", "%t", "%rand_"].contains(where: { topic.contains($0) }) {
            self.report("--response-topic", "'\(topic)' would be another for each request; use %i or %c")
        } else if options.publishers > 1, !["%i", "%c", "%u"].contains(where: { topic.contains($0) }) {
            self.report("--response-topic", "'\(topic)' is the same for all, and each would read all answers; add %c")
        }
    }
}

import RunControl
import Scenario
import clamor

extension Invocation {
    /// The run that it asks for.
    var scenario: ScenarioOptions? {
        guard case .run(let scenario) = self else { return nil }
        return scenario
    }

    private var work: ScenarioGroup.Work? { self.scenario.flatMap { $0.isFile ? nil : $0.groups[0].work } }

    /// The options of a command of MQTT.
    var mqtt: MQTTOptions? {
        guard case .mqtt(let options) = self.work else { return nil }
        return options
    }

    /// The options of a command of XMPP.
    var xmpp: XMPPOptions? {
        guard case .xmpp(let options) = self.work else { return nil }
        return options
    }
}

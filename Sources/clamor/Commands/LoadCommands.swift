import ArgumentParser
import RunControl
import Scenario
import Workloads

/// The name of a command that is a scenario of one group.
protocol LoadName {
    static var name: CommandName { get }
}

enum Conn: LoadName { static let name = CommandName.conn }
enum Pub: LoadName { static let name = CommandName.pub }
enum Sub: LoadName { static let name = CommandName.sub }
enum PubSub: LoadName { static let name = CommandName.pubsub }
enum XMPPLogin: LoadName { static let name = CommandName.login }
enum XMPPMessage: LoadName { static let name = CommandName.message }
enum XMPPPing: LoadName { static let name = CommandName.ping }
enum XMPPMUC: LoadName { static let name = CommandName.muc }
enum XMPPPresence: LoadName { static let name = CommandName.presence }
enum XMPPRegister: LoadName { static let name = CommandName.register }

struct LoadCommand<Name: LoadName>: TableCommand {
    static var name: CommandName { Name.name }
    @OptionGroup var options: CommandOptions<Self>

    func invocation(_ given: inout GivenOptions) -> Invocation {
        let word = Self.name.word
        guard Set<CommandName>.xmpp.contains(Self.name), let work = XMPPLoad.Work(rawValue: word) else {
            return .run(ScenarioOptions(.mqtt(given.mqtt(MQTTOptions.Kind(rawValue: word) ?? .conn))))
        }
        return .run(ScenarioOptions(.xmpp(given.xmpp(work))))
    }
}

/// Load on XMPP servers; all work is in its subcommands.
struct XMPPCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "xmpp",
        abstract: "Load on XMPP servers: login, message, presence, ping, muc, register.",
        subcommands: [
            LoadCommand<XMPPLogin>.self, LoadCommand<XMPPMessage>.self, LoadCommand<XMPPPing>.self,
            LoadCommand<XMPPMUC>.self, LoadCommand<XMPPPresence>.self, LoadCommand<XMPPRegister>.self,
        ]
    )

    static var commandNames: [String] { self.configuration.subcommands.compactMap { $0.configuration.commandName } }
}

import ArgumentParser
import Workloads

/// A command that is a scenario of one group.
protocol LoadCommand: TableCommand {}

struct Conn: LoadCommand {
    static let name = CommandName.conn
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { .run(given.mqtt(.conn)) }
}

struct Pub: LoadCommand {
    static let name = CommandName.pub
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { .run(given.mqtt(.pub)) }
}

struct Sub: LoadCommand {
    static let name = CommandName.sub
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { .run(given.mqtt(.sub)) }
}

struct PubSub: LoadCommand {
    static let name = CommandName.pubsub
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { .run(given.mqtt(.pubsub)) }
}

/// Load on XMPP servers; all work is in its subcommands.
struct XMPPCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "xmpp",
        abstract: "Load on XMPP servers: login, message, presence, ping, muc, register.",
        subcommands: [
            XMPPLogin.self, XMPPMessage.self, XMPPPing.self, XMPPMUC.self, XMPPPresence.self, XMPPRegister.self,
        ]
    )

    static var commandNames: [String] { self.configuration.subcommands.compactMap { $0.configuration.commandName } }
}

struct XMPPLogin: LoadCommand {
    static let name = CommandName.login
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { .xmpp(given.xmpp(.login)) }
}

struct XMPPMessage: LoadCommand {
    static let name = CommandName.message
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { .xmpp(given.xmpp(.message)) }
}

struct XMPPPing: LoadCommand {
    static let name = CommandName.ping
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { .xmpp(given.xmpp(.ping)) }
}

struct XMPPMUC: LoadCommand {
    static let name = CommandName.muc
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { .xmpp(given.xmpp(.muc)) }
}

struct XMPPPresence: LoadCommand {
    static let name = CommandName.presence
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { .xmpp(given.xmpp(.presence)) }
}

struct XMPPRegister: LoadCommand {
    static let name = CommandName.register
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { .xmpp(given.xmpp(.register)) }
}

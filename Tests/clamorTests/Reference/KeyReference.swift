import Scenario
import clamor

/// The page with every key of scenario files.
enum KeyReference {
    static var text: String {
        var lines = [Self.introduction, ""]
        lines += ["## The file", ""] + Self.table(ReferenceKey.file) + ["", Self.groups, ""]
        lines += ReferenceText.table(
            ["section", "content"],
            Self.sections.map { section, purpose in
                ["[`\(section)`](#\(ReferenceText.anchor(section)))", ReferenceText.markdown(purpose)]
            }
        )
        let plain = ReferenceKey.keys(in: nil)
        lines += ["", "### Keys of all groups", ""]
        lines += Self.table(plain.filter { $0.commands.isStrictSuperset(of: .mqtt) } + [.template])
        for (title, commands) in [("Keys of MQTT groups", Set<CommandName>.mqtt), ("Keys of XMPP groups", .xmpp)] {
            lines += ["", "### \(title)", ""] + Self.table(plain.filter { $0.commands.isSubset(of: commands) })
        }
        for (section, purpose) in Self.sections {
            lines += ["", "### `\(section)`", "", ReferenceText.markdown(purpose), ""]
            lines += Self.table(ReferenceKey.keys(in: section))
        }
        lines += ["", Self.rates, "", "## Stages", "", Self.stages, ""] + Self.table(ReferenceKey.stages)
        lines += ["", Self.variables]
        return lines.joined(separator: "\n") + "\n"
    }

    /// The sections of a group, with their content.
    static let sections: [(name: String, purpose: String)] = [
        ("connect", "How the clients connect."),
        (
            "publish",
            "Messages that the clients publish, and their pace. A list has several streams, each with a pace and one QoS; "
                + "the keys 'window', 'limit', 'wait', 'ack_timeout', 'topic_alias' and 'think' are not in it."
        ),
        (
            "subscribe",
            "A list of filters, each with its options; beside 'publish' the publishers subscribe. Beside 'subscribers' it is "
                + "a mapping without 'filter' and 'qos'."
        ),
        ("reconnect", "How often and when a client comes back from a loss; a number alone is 'times'."),
        ("cycle", "Clients that sleep by turns: how long they are online and offline."),
        ("reply", "Answers of the clients to messages of the run, at QoS 0."),
        ("will", "The will of each client."),
        ("message", "Chat messages between the clients."),
        ("presence", "Changes of presence."),
        ("ping", "Pings of the server."),
        ("muc", "Rooms, and the messages in them."),
        ("registration", "Accounts that the clients create."),
    ]

    private static func table(_ keys: [ReferenceKey]) -> [String] {
        let all = keys.reduce(into: Set<CommandName>()) { $0.formUnion($1.commands) }
        return ReferenceText.table(
            ["key", "value", "default", "meaning", "groups", "option"],
            keys.map { key in
                [
                    ReferenceText.code(key.path), ReferenceText.markdown(key.type), ReferenceText.markdown(key.usual),
                    ReferenceText.markdown(key.meaning),
                    key.commands.isEmpty || key.commands == all ? "" : key.commands.groups,
                    ReferenceText.list(key.options),
                ]
            }
        )
    }

    // MARK: - Words by hand

    private static let introduction = """
        # Scenario keys

        `make reference` generates this page from the program's option table. [Scenarios](Scenarios.md) is the guide to
        scenario files.

        ## Values

        | value | examples | meaning |
        | --- | --- | --- |
        | duration | `10s`, `250ms`, `1m30s` | units `ns`, `us`, `ms`, `s`, `m`, `h`, `d`; a number without a unit is an error |
        | rate | `500/s`, `500` | of the whole group |
        | size | `256`, `64KiB`, `1MB` | a range is `64..1KiB` |
        | share | `30%`, `0.1%` | 0% to 100% |
        | target | `embedded`, `mqtt://broker.example` | also `mqtts://`, `ws://`, `wss://`, `xmpp://`, `xmpps://` |

        A text that begins with `%`, `*`, `@` or `{`, or has `: ` or ` #` in it, needs quotes. Each value may have
        [variables](#variables) in it. An unknown key is an error.

        Editors with YAML support complete keys and mark errors with the
        [JSON Schema](../../../results/schema/scenario.schema.json). [Scenarios](Scenarios.md#editors) has the line that
        names it.
        """

    private static let groups = """
        ## Groups

        The keys of a group decide what it does, as [Scenarios](Scenarios.md#groups) explains. The column "groups" names the
        commands whose groups take the key, where not all groups of the table do. `connect.rate` in these tables is the
        key `rate` in the section `connect`.
        """

    private static let rates = """
        ## Rates

        `rate` in `publish`, `message`, `presence`, `ping` and `muc` has three forms:

        | form | meaning |
        | --- | --- |
        | `500/s` | a constant rate |
        | `{ from: 100/s, to: 5000/s, over: 1m }` | a ramp; without `over` it lasts as long as the load |
        | `{ steps: [1000/s, 2000/s], every: 30s }` | steps; the last one lasts until the load ends |
        """

    private static let stages = "`stages` is a list. Each entry has these keys:"

    private static let variables = """
        ## Variables

        `${NAME}` in a value is a variable, and `${NAME:-5000}` has a default. `vars: { NAME: 5000 }` gives it a value in
        the file, and `--set NAME=5000` on the command line. In a mapping on one line a variable needs quotes.
        """
}

extension Set<CommandName> {
    /// The groups that do what these commands do.
    fileprivate var groups: String {
        self.audience.replacing(" loads", with: "")
    }
}

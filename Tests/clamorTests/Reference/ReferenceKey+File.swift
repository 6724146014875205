import Scenario
import clamor

import Measurement

// Keys that no option has, or that mean something else in a file.
extension ReferenceKey {
    /// The keys of a file.
    static var file: [Self] {
        ScenarioReader.topKeys.map { key in
            let option = OptionTable.specs(of: .run).first { $0.scope != .group && $0.key == key }
            let names = option?.shortAndLong ?? []
            switch key {
            case "name":
                return Self(
                    path: key,
                    type: "text",
                    usual: "scenario",
                    meaning: "The name of the run, in its headline, 'run.json' and the default directory.",
                    options: names,
                    schema: ScenarioSchema.reference("text")
                )
            case "target":
                return Self.target(
                    "The server of all groups without a 'target'.",
                    usual: "'mqtt://127.0.0.1:1883'; of XMPP where DNS says",
                    OptionTable.specs(of: .run).first { $0.names == ["--target"] }?.names ?? []
                )
            case "duration":
                return Self(
                    path: key,
                    type: "duration",
                    usual: "10s",
                    meaning: "The measured phase; 0: until SIGINT.",
                    options: names,
                    schema: ScenarioSchema.reference("duration")
                )
            case "thresholds":
                return Self(
                    path: key,
                    type: "list",
                    meaning: "Conditions on metrics; exit 99 if one fails.",
                    options: names,
                    schema: ["type": "array", "items": ScenarioSchema.reference("text")]
                )
            case "bridged":
                return Self(
                    path: key,
                    type: "'true' or 'false'",
                    usual: "false",
                    meaning: "Says that servers forward to each other where groups have different targets.",
                    schema: ScenarioSchema.reference("boolean")
                )
            case "groups":
                return Self(
                    path: key,
                    type: "mapping",
                    usual: "required",
                    meaning: "The clients, a name for each group and its keys below the name.",
                    schema: ScenarioSchema.groups
                )
            case "templates":
                return Self(
                    path: key,
                    type: "mapping",
                    meaning: "Keys that groups share, a name for each template.",
                    schema: ScenarioSchema.templates
                )
            case "stages":
                return Self(
                    path: key,
                    type: "list",
                    meaning: "Parts of the load, one after another, instead of 'duration' and 'warmup'.",
                    schema: ScenarioSchema.stages
                )
            case "vars":
                return Self(
                    path: key,
                    type: "mapping",
                    meaning: "Values of variables, where the command line has none.",
                    schema: ScenarioSchema.variables
                )
            case "include":
                return Self(
                    path: key,
                    type: "file, or a list",
                    meaning: "Files whose groups, templates and thresholds are added.",
                    schema: ScenarioSchema.oneOrMore(ScenarioSchema.reference("text"))
                )
            default:
                guard let option else { preconditionFailure("each key of a file is described") }
                return Self(file: option)
            }
        }
    }

    /// The keys of a stage.
    static let stages: [Self] = ScenarioReader.stageKeys.map { key in
        let share = ScenarioSchema.reference("share")
        return switch key {
        case "name":
            Self(
                path: key,
                type: "text",
                usual: "required",
                meaning: "Letters, digits, '_', '-' and '.'; but not 'connect' and 'drain'.",
                schema: ScenarioSchema.stageName
            )
        case "for":
            Self(
                path: key,
                type: "duration",
                usual: "required",
                meaning: "How long the stage lasts.",
                schema: ScenarioSchema.reference("duration")
            )
        case "load":
            Self(
                path: key,
                type: "share",
                usual: "100%",
                meaning: "Scales the rates of all groups, up to 10000%.",
                schema: ScenarioSchema.reference("load")
            )
        case "warmup":
            Self(
                path: key,
                type: "'true' or 'false'",
                usual: "false",
                meaning: "Leaves the stage out of durations and rates.",
                schema: ScenarioSchema.reference("boolean")
            )
        case "reconnect":
            Self(
                path: key,
                type: "share",
                usual: "0%",
                meaning: "Share of the clients that reconnect, spread over the stage.",
                schema: share
            )
        case "offline":
            Self(
                path: key,
                type: "share, 'true' or 'false'",
                usual: "0%",
                meaning: "Share of the subscribers that are away for the stage; 'true' means all.",
                schema: ["anyOf": [share, ScenarioSchema.reference("boolean")]]
            )
        case "clients":
            Self(
                path: key,
                type: "share, number, or one for each group",
                usual: "100%",
                meaning: "How many clients of each group take part; '{ sensors: 10% }' names groups.",
                schema: ScenarioSchema.turnout
            )
        default: preconditionFailure("each key of a stage is described")
        }
    }

    /// The keys beside a rate that no option has.
    static let pace: [Self] = ScenarioReader.paceKeys.map { key in
        switch key {
        case "every":
            Self(
                path: key,
                type: "duration",
                usual: "none",
                meaning: "Interval between the operations of one client; another word for 'interval'.",
                schema: ScenarioSchema.reference("duration")
            )
        case "arrivals":
            Self(
                path: key,
                type: "'even', 'poisson'",
                usual: "even",
                meaning: "Operations at even intervals, or at random times by the seed. Needs a rate.",
                schema: ScenarioSchema.value(.choice(["even", "poisson"]))
            )
        case "burst":
            Self(
                path: key,
                type: "1 to 1000000",
                usual: "1",
                meaning: "Operations that are due at once. Needs a rate.",
                schema: ScenarioSchema.value(.number(least: 1, most: 1_000_000))
            )
        case "think":
            Self(
                path: key,
                type: "duration",
                usual: "none",
                meaning: "Pause of a client before its next operation, in closed loop.",
                schema: ScenarioSchema.reference("duration")
            )
        default: preconditionFailure("each key of a pace is described")
        }
    }

    static let template = Self(
        path: ScenarioReader.templateKey,
        type: "name",
        usual: "none",
        meaning: "The template whose keys the group gets; its own keys override them.",
        schema: ScenarioSchema.reference("text")
    )

    /// Messages to single clients.
    private static let p2p = Self(
        path: "p2p",
        type: "mapping",
        usual: "none",
        meaning: "Sends to 'ROOT/p2p/CLIENTID', whose client need not subscribe; '{ root: door, to: random }'. "
            + "'to' is 'random', or a group.",
        commands: [.pub],
        schema: ScenarioSchema.p2p
    )

    /// The name of a stream in a list.
    private static let stream = Self(
        path: "name",
        type: "text",
        usual: "'stream1', 'stream2', ...",
        meaning: "In a list, the label 'stream': letters, digits, '_', '-' and '.'.",
        commands: [.pub],
        schema: ScenarioSchema.streamName
    )

    /// The keys of a stream in a list.
    static var streams: [Self] {
        let names = ScenarioReader.streamKeys
        return Self.keys(in: "publish").filter { names.contains($0.name) }
    }

    static func keys(in section: String?) -> [Self] {
        let own = Self.groups.filter { $0.section == section }
        guard let section, section != "connect", let rate = own.first(where: { $0.name == "rate" }) else { return own }
        let others = section == "publish" ? [Self.p2p, Self.stream] : []
        return own
            + (Self.pace + others).map { pace in
                Self(
                    path: "\(section).\(pace.path)",
                    type: pace.type,
                    usual: pace.usual,
                    meaning: pace.meaning,
                    commands: pace.commands.isEmpty ? rate.commands : pace.commands,
                    schema: pace.schema
                )
            }
    }
}

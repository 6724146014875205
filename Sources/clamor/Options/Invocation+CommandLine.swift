import ArgumentParser
import Foundation
import RunControl
package import Scenario

extension Invocation {
    /// Reads a command line; `arguments` begin behind the program's name.
    package static func parse(_ arguments: [String], environment: [String: String] = [:]) -> Invocation {
        // A command of a group has two words.
        let words = arguments.prefix(arguments.first == "xmpp" ? 2 : 1).filter { !$0.hasPrefix("-") }
        let name = (["clamor"] + words).joined(separator: " ")
        if let refusal = self.refusal(of: arguments, name: name) { return .refused([refusal]) }
        if let help = HelpText.asked(by: arguments) { return .text(help) }
        do {
            let command = try Clamor.parseAsRoot(arguments)
            guard let command = command as? any TableCommand else {
                return .refused(["clamor: a command is missing; see clamor --help"])
            }
            return self.read(command, arguments, environment, name)
        } catch {
            if Clamor.exitCode(for: error) == .success { return .text(Clamor.message(for: error)) }
            return .refused([self.line(parserMessage: Clamor.message(for: error), name: name, arguments: arguments)])
        }
    }

    // MARK: - Commands

    private static func read(
        _ command: some TableCommand,
        _ arguments: [String],
        _ environment: [String: String],
        _ name: String
    ) -> Invocation {
        var given = command.options.given(arguments, environment: environment)
        let invocation = command.invocation(&given)
        return given.answer(invocation, of: name)
    }

    // MARK: - Refusals that the argument parser does not word

    private static func refusal(of arguments: [String], name: String) -> String? {
        guard let first = arguments.first else {
            return "clamor: a command is missing; try clamor pubsub -h embedded, or see clamor --help"
        }
        if first == "-h" || first == "--host" {
            return "clamor: -h is the host and belongs behind a command; for help: clamor --help"
        }
        if arguments.count == 2, arguments[1] == "-h" {
            return "clamor \(first): -h is the host and needs a value; for help: clamor \(first) --help"
        }
        if let refusal = self.refusal(ofVersion: arguments, name: name) { return refusal }
        let command = first == "help" && arguments.count > 1 ? arguments[1] : first
        guard command.hasPrefix("-") || command == "help" || Clamor.commandNames.contains(command) else {
            let known = Clamor.commandNames.joined(separator: ", ")
            return "clamor: there is no command '\(command)'; the commands are \(known)"
        }
        return first == "xmpp" ? self.refusal(ofXMPP: arguments) : nil
    }

    /// In `emqtt_bench` `--version` is the version of MQTT; printing Clamor's instead would end a script with success.
    private static func refusal(ofVersion arguments: [String], name: String) -> String? {
        let words = arguments.prefix { $0 != "--" }
        guard let index = words.firstIndex(where: { $0 == "--version" || $0.hasPrefix("--version=") }) else {
            return nil
        }
        let next = words.dropFirst(index + 1).first
        guard words[index] != "--version" || next?.hasPrefix("-") == false else { return nil }
        return "\(name): --version: prints Clamor's version and takes no value; the version of MQTT is -V, such as -V 5"
    }

    private static func refusal(ofXMPP arguments: [String]) -> String? {
        let known = XMPPCommand.commandNames.joined(separator: ", ")
        guard arguments.count > 1, arguments[1] != "-h" else {
            return "clamor xmpp: which one? The commands are \(known); see clamor xmpp --help"
        }
        let name = arguments[1]
        guard !name.hasPrefix("-"), !XMPPCommand.commandNames.contains(name), name != "help" else { return nil }
        return "clamor xmpp: there is no command '\(name)'; the commands are \(known)"
    }

    /// The option of another tool that the argument parser's message is about.
    private static func foreign(_ message: String, _ arguments: [String], _ command: CommandName?) -> ForeignOption? {
        if let option = message.firstMatch(of: /^Unknown option '(-[^']*)'/) {
            return ForeignOption.of(String(option.1))
        }
        // `-im 100` is read as `-i m`, and a number too many.
        guard message.contains("nexpected argument") else { return nil }
        let known = Set((command.map { OptionTable.specs(of: $0) } ?? []).flatMap(\.allNames))
        return arguments.lazy.filter { !known.contains($0) }.compactMap { ForeignOption.of($0) }.first
    }

    /// The argument parser's message in one line, followed by the remedy.
    private static func line(parserMessage: String, name: String, arguments: [String]) -> String {
        var message = parserMessage.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
            .joined(separator: " ")
        if message.contains("Missing value for '-h") {
            return "\(name): -h is the host and needs a value; for help: \(name) --help"
        }
        if message.contains("nexpected argument"),
            Redaction.command(arguments).contains(where: { $0.contains(Redaction.mask) })
        {
            // It may be the second word of a password.
            message = "An argument too many (not shown, since a password is near it); quote values that hold spaces"
        }
        let command = CommandName(arguments: arguments)
        if let foreign = self.foreign(message, arguments, command) { return "\(name): \(foreign.words)" }
        if let option = message.firstMatch(of: /^Unknown option '(-[^']*)'/) {
            // The parser's own suggestions are as far as another option.
            let known = command.map { OptionTable.specs(of: $0).filter { !$0.isHidden }.flatMap(\.allNames) } ?? []
            // Each letter is as near as any other.
            let near = option.1.hasPrefix("--") ? NearestName.of(String(option.1), in: known, most: 1) : nil
            message = "\(option.0)" + (near.map { ". Did you mean '\($0)'?" } ?? "")
        }
        message += message.hasSuffix("?") ? " See" : "; see"
        return Redaction.hideURLSecrets(in: "\(name): \(message) \(name) --help")
    }
}

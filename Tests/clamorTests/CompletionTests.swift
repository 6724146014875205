import Scenario
import Testing
import clamor

@Suite("The completions of shells")
struct CompletionTests {
    @Test("a shell's completions have every option of every command", arguments: ["bash", "zsh", "fish"])
    func completions(_ shell: String) {
        guard case .text(let text) = Invocation.parse(["--generate-completion-script", shell]) else {
            Issue.record("refused")
            return
        }
        for spec in OptionTable.all where !spec.isHidden {
            guard let name = spec.names.first(where: { $0.hasPrefix("--") }) else { continue }
            let words = shell == "fish" ? ["'", "="].map { "\(name.dropFirst(2))\($0)" } : [name]
            #expect(words.contains { text.contains($0) }, "\(name)")
        }
    }
}
